"""A job on a Spark master with executors in processes of their own equals the test driver, also stopped and resumed."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import headrace as hr
from tests.support.marked import MARK, kill, wait_until_gone

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCENARIOS = Path(__file__).parents[2] / "scenarios"
# One of each kind of step.
STORIES = (
    "hopping",
    "session_merge",
    "sliding",
    "count_overlapping",
    "corrections_travel",
    "top_of_a_table",
    "dedup",
    "shaping",
)
APP = """
import headrace as hr

app = hr.App("pageviews", home={home!r})
views = app.stream(
    "page_views", schema="url string, user string, at timestamp", key="url", time="at",
    watermark=hr.bounded("10 seconds", idle="1 hour"), partitions=3,
)
per_url = views.where("url is not null").window(hr.tumbling("1 minute"), by="url").agg(views="count(*)").emit(until="2 minutes")
app.view("per_url", per_url)
app.view("per_hour", per_url.window(hr.tumbling("1 hour")).agg(views="sum(views)"))
app.view("visits", views.window(hr.session("30 seconds"), by="user").agg(views="count(*)", last="last(url)"))
app.view("per_user", views.group("user", ttl=None).agg(views="count(*)"))
"""


def batches() -> list[list[dict[str, Any]]]:
    random = Random(5)
    moments = [NOON + timedelta(seconds=n / 4 - random.random() * 9) for n in range(800)]
    rows = [{"url": f"/{random.randrange(9)}", "user": f"u{random.randrange(40)}", "at": at} for at in moments]
    return [[*rows[:400], {"url": "/bad", "user": "x", "at": None}], rows[400:]]


def run(*command: str) -> str:
    """Run Python with the master set; gives what it prints, when all that it started is gone."""
    mark = uuid.uuid4().hex
    environment = {
        **os.environ, MARK: mark, "HEADRACE_MASTER": "local-cluster[2,1,1024]", "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
    }  # fmt: skip
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, *command], env=environment, start_new_session=True, **piped) as process:
        try:
            out, err = process.communicate(timeout=280)
            assert process.returncode == 0, err
            wait_until_gone(mark, 30)
        finally:
            kill(mark)
    return str(out)


def test_a_job_on_two_executors_equals_the_test_driver(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(APP.format(home=str(tmp_path / "home")))
    names: dict[str, hr.App] = {}
    exec(file.read_text(), names)
    app = names["app"]
    with hr.TestDriver(app, partitions=3) as driver:
        for rows, until in zip(batches(), ("caught-up", "end"), strict=True):
            with app.log.producer(acks="all") as producer:
                for row in rows:
                    producer.send("page_views", row)
            run("-m", "headrace", "run", str(file), "--until", until)
            driver.send("page_views", rows)
        driver.end()
        for view in ("per_url", "per_hour", "visits", "per_user"):
            assert sorted(map(str, app.read(view).to_pylist())) == sorted(map(str, driver.rows(view)))
        assert app.log.read("page_views.dead").num_rows == len(driver.dead_letters("page_views")) == 1
    assert (tmp_path / "home" / "jobs" / "pageviews" / "headrace.zip").is_file()


def test_stories_are_true_on_two_executors_stopped_and_resumed_midway(tmp_path: Path) -> None:
    files = [SCENARIOS / f"{name}.yaml" for name in STORIES]
    told = dict(line.rsplit(" ", 1) for line in run("-m", "tests.support.on_cluster", str(tmp_path), *map(str, files)).splitlines())
    assert told.pop("executors") == "2"
    assert list(told) == list(STORIES)
    assert all(int(checks) > 0 for checks in told.values())
