"""Images of the disk at each step of an epoch: a job that continues from one has done everything once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import headrace as hr
from headrace.testing.faults import FAILPOINTS, recorded
from tests.support.examples import soaked
from tests.support.marked import MARK, kill, standing, stop, wake

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RECORDS, URLS = 60, 7
APP = """
import headrace as hr

app = hr.App("clicks", home={home!r})
schema = "n int, url string, at timestamp, text string"
clicks = app.stream("clicks", schema=schema, time="at", watermark=hr.bounded("5 seconds"))
app.view("last_text", clicks.select("url", "text", "at").to_table(key="url", ttl=None))  # large: its state is in files
app.view("per_minute", clicks.window(hr.tumbling("1 minute"), by="url").agg(clicks="count(*)"))
per_url = clicks.group("url", ttl=None).agg(clicks="count(*)", last="max(n)")
app.view("per_url", per_url)
app.sink(per_url, hr.delta({home!r} + "/lake"), name="lake")
app.sink(per_url, hr.search({home!r} + "/index"), name="index")
app.sink(clicks.select("n", "at"), hr.log("kept"))
app.sink(clicks.select("n", "at"), hr.parquet({home!r} + "/files"), name="files")
"""
# Each failpoint on the way of an epoch that stays on this machine, and at which hit of a process: where it can, in the second epoch. Those
# of the log itself have tests of their own.
ONCE = ("job.",)
AGAIN = ("source.", "state.", "sink.", "stage.", "publish.", "search.commit.")
STEPS = {name: 1 if name.startswith(ONCE) else 2 for name in FAILPOINTS if name.startswith((*ONCE, *AGAIN))}
# The loop of quick epochs commits them itself.
LOOP = {name: 2 for name in FAILPOINTS if name.startswith("loop.")}


@pytest.mark.timeout(600)  # some twenty runs of a job
@pytest.mark.parametrize("quick_rows", [0, RECORDS], ids=["several tasks", "one task"])
def test_a_job_goes_on_exactly_from_what_a_crash_at_any_step_leaves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_rows: int
) -> None:
    monkeypatch.setenv("HEADRACE_QUICK_ROWS", str(quick_rows))
    home = tmp_path / "home"
    _send(_app(home))
    steps = STEPS | LOOP if quick_rows else STEPS
    images = _taken(home, tmp_path / "images", steps)
    assert images.keys() == steps.keys()
    different = {_digest(image): image for image in images.values()}
    assert len(different) > 8
    # What a crash of a task leaves is the same for one task: a few of its images, those of the loop, and all of several.
    chosen = [image for number, image in enumerate(different.values()) if not quick_rows or number % 4 == 0 or image.name in LOOP]
    for image in soaked(list(different.values()), chosen):
        _check(image)


def _taken(home: Path, place: Path, steps: Mapping[str, int]) -> dict[str, Path]:
    """Run the job, and copy all it has when one of its processes comes to a step; nothing else of it moves then."""
    run, passed, images = uuid.uuid4().hex, place.with_name("passed"), dict[str, Path]()
    file = place.with_name("app.py")
    file.write_text(APP.format(home=str(home)))
    rules = ";".join(f"{name}=stop({passed})@{hit}" for name, hit in steps.items())
    environment = {**os.environ, MARK: run, "HEADRACE_FAILPOINTS": rules, "HEADRACE_RESTARTS": "0"}
    command = [sys.executable, "-m", "headrace", "run", str(file), "--until", "end", "--rows-per-epoch", "20"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            while process.poll() is None:
                threading.Event().wait(0.02)
                # Who stands still now has written its step down before: nobody is woken whose image is not taken.
                still = standing(run)
                if set(recorded(passed)) - images.keys():
                    still = stop(run, but=0)
                    fresh = set(recorded(passed)) - images.keys()
                    images |= dict.fromkeys(fresh, _copied(home, place / min(fresh)))
                wake(run, still)
            assert process.returncode == 0, (process.stderr.read() if process.stderr else b"").decode()
        finally:
            kill(run)
    return images


def _copied(home: Path, place: Path) -> Path:
    """All that is in a home. Which app a job is of, it knows by the places of its sinks, too."""
    shutil.copytree(home, place)
    record = place / "jobs" / "clicks" / "job.json"
    # A job that has only begun has no record yet.
    if record.is_file():
        record.write_text(record.read_text().replace(str(home), str(place)))
    return place


def _check(home: Path) -> None:
    app = _app(home)
    report = app.run(until="end")
    expected = {f"/{rest}": (len(range(rest, RECORDS, URLS)), max(range(rest, RECORDS, URLS))) for rest in range(URLS)}
    assert _by_url(app.read("per_url").to_pylist()) == expected, home.name
    assert _by_url(DeltaTable(home / "lake").to_pyarrow_table().to_pylist()) == expected, home.name
    assert _by_url(hr.search(home / "index").find("*", limit=100)) == expected, home.name
    assert {row["url"]: row["text"] for row in app.read("last_text").to_pylist()} == {
        f"/{n % URLS}": _text(n) for n in range(RECORDS - URLS, RECORDS)
    }, home.name
    minutes = {(row["url"], row["window_start"].minute): row["clicks"] for row in app.read("per_minute").to_pylist()}
    assert minutes == Counter((f"/{n % URLS}", n // 15) for n in range(RECORDS)), home.name
    assert sorted(app.log.read("kept")["n"].to_pylist()) == list(range(RECORDS)), home.name
    files = [n for file in (home / "files").glob("*.parquet") for n in pq.read_table(file)["n"].to_pylist()]
    assert sorted(files) == list(range(RECORDS)), home.name
    assert {row["in"] for row in report.accounting if row["step"] in ("clicks", "clicks.window", "clicks.group")} == {RECORDS}, home.name
    app.log.close()


def _by_url(rows: list[dict[str, object]]) -> dict[object, tuple[object, object]]:
    return {row["url"]: (row["clicks"], row["last"]) for row in rows}


def _app(home: Path) -> hr.App:
    names: dict[str, hr.App] = {}
    exec(APP.format(home=str(home)), names)
    return names["app"]


def _send(app: hr.App) -> None:
    with app.log.producer(acks="all") as producer:
        for n in range(RECORDS):
            producer.send("clicks", {"n": n, "url": f"/{n % URLS}", "at": NOON + timedelta(seconds=4 * n), "text": _text(n)})
    app.log.close()


def _text(n: int) -> str:
    """Long, and not to be compressed much."""
    return Random(n).randbytes(5_000).hex()


def _digest(home: Path) -> str:
    """Which files there are, and what is in them, but for what no run goes on from."""
    digest = hashlib.blake2b()
    for file in sorted(home.rglob("*")):
        if file.is_file() and file.name not in ("spark.log", "headrace.log", "driver", "job.json"):
            digest.update(str(file.relative_to(home)).encode() + file.read_bytes())
    return digest.hexdigest()
