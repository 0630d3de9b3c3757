"""A job on a Spark master with executors in processes of their own equals the test driver, also stopped and resumed."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

import headrace as hr
from tests.support.examples import soaked
from tests.support.marked import MARK, kill, wait_until_gone
from tests.support.on_cluster import batches, send

SCENARIOS = Path(__file__).parents[2] / "scenarios"
# One of each kind of step; `make test` tells two of them here, and all kinds on Spark without executors of their own.
STORIES = (
    "session_merge",
    "corrections_travel",
    *soaked(("hopping", "dedup", "sliding", "count_overlapping", "top_of_a_table", "shaping"), ()),
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


def run(*command: str) -> str:
    """Run Python with the master set; gives what it prints, when all that it started is gone."""
    mark = uuid.uuid4().hex
    environment = {
        **os.environ, MARK: mark, "HEADRACE_MASTER": "local-cluster[2,1,1024]", "HEADRACE_CLUSTER": "experimental",
    }  # fmt: skip
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, *command], env=environment, start_new_session=True, **piped) as process:
        try:
            out, err = process.communicate(timeout=280)
            assert process.returncode == 0, err
            wait_until_gone(mark)
        finally:
            kill(mark)
    return str(out)


@dataclass(frozen=True)
class Done:
    """An app that has been run, stopped and resumed, and what was printed about the stories between."""

    app: hr.App
    told: dict[str, int]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    directory = tmp_path_factory.mktemp("cluster")
    file = directory / "app.py"
    file.write_text(APP.format(home=str(directory / "home")))
    names: dict[str, hr.App] = {}
    exec(file.read_text(), names)
    app = names["app"]
    send(app, batches()[0])
    # In the long form a driver of its own does the first part; else the driver of the stories does both.
    if soaked(True, False):
        run("-m", "headrace", "run", str(file), "--until", "caught-up")
    stories = [str(SCENARIOS / f"{name}.yaml") for name in STORIES]
    lines = run("-m", "tests.support.on_cluster", str(directory / "stories"), str(file), *stories).splitlines()
    return Done(app, {name: int(count) for name, count in (line.rsplit(" ", 1) for line in lines)})


@pytest.mark.timeout(600)  # a start of Spark with two executors, and another one in the long form
def test_a_job_on_two_executors_equals_the_test_driver(done: Done) -> None:
    with hr.TestDriver(done.app, partitions=3) as driver:
        for rows in batches():
            driver.send("page_views", rows)
        driver.end()
        for view in ("per_url", "per_hour", "visits", "per_user"):
            assert sorted(map(str, done.app.read(view).to_pylist())) == sorted(map(str, driver.rows(view)))
        assert done.app.log.read("page_views.dead").num_rows == len(driver.dead_letters("page_views")) == 1
    assert (done.app.settings.home / "jobs" / "pageviews" / "headrace.zip").is_file()


@pytest.mark.timeout(600)
def test_stories_are_true_on_two_executors_stopped_and_resumed_midway(done: Done) -> None:
    assert done.told["executors"] == 2
    assert list(done.told) == [*STORIES, "executors"]
    assert all(checks > 0 for checks in done.told.values())
