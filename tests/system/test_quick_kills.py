"""A job of quick epochs that is killed amid them, and gone on with in one task or in several, has done everything exactly once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import headrace as hr
from headrace.checkpoint.epoch_files import stored_plan
from headrace.engine.planning.quick_epochs import ONE, SEVERAL
from headrace.jobs.directory import JobDirectory
from tests.support.examples import soaked
from tests.support.marked import MARK, kill, wait_until_gone

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RECORDS, USERS = 3_000, 23
APP = """
import headrace as hr

app = hr.App("clicks", home={home!r})
columns = "user string, number bigint, at timestamp"
clicks = app.stream("clicks", columns, key="user", time="at", watermark=hr.bounded("1 minute", idle="1 day"), partitions=2)
minutes = clicks.window(hr.tumbling("1 minute"), by="user").agg(seen="count(*)")
app.view("minutes", minutes)
app.view("hours", minutes.window(hr.tumbling("1 hour")).agg(seen="sum(seen)"))
app.view("users", clicks.group("user", ttl=None).agg(seen="count(*)", last="max(number)"))
app.sink(clicks.where("number % 2 = 0"), hr.log("even"))
"""


@pytest.mark.usefixtures("spark")
def test_quick_epochs_that_are_killed_do_everything_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_QUICK_ROWS", str(RECORDS))
    file = tmp_path / "app.py"
    file.write_text(APP.format(home=str(tmp_path / "home")))
    names: dict[str, hr.App] = {}
    exec(file.read_text(), names)
    app, place = names["app"], JobDirectory(tmp_path / "home", "clicks")
    moments = [NOON + timedelta(seconds=number / 4) for number in range(RECORDS)]
    with app.log.producer(acks="all") as producer:
        for number, moment in enumerate(moments):
            producer.send("clicks", {"user": f"u{number % USERS}", "number": number, "at": moment})
    # Killed in one task, then in several, and in the long form in one again; the rest in one.
    for quick_rows in (RECORDS, 0, *soaked((RECORDS,), ())):
        with running(file, quick_rows) as process:
            wait_for_epochs(place, 4, process)
        plan = stored_plan(place.checkpoint / "offsets" / str(place.committed_epoch() - 1))
        assert plan.tasks == (ONE if quick_rows else SEVERAL)
    report = app.run(until="end", rows_per_epoch=600)
    users = {row["user"]: (row["seen"], row["last"]) for row in app.read("users").to_pylist()}
    assert users == {f"u{user}": (len(range(user, RECORDS, USERS)), max(range(user, RECORDS, USERS))) for user in range(USERS)}
    minutes = {(row["user"], row["window_start"]): row["seen"] for row in app.read("minutes").to_pylist()}
    assert minutes == Counter((f"u{number % USERS}", moment.replace(second=0, microsecond=0)) for number, moment in enumerate(moments))
    assert sum(row["seen"] for row in app.read("hours").to_pylist()) == RECORDS
    assert sorted(app.log.read("even", columns=["number"])["number"].to_pylist()) == list(range(0, RECORDS, 2))
    counted = {row["step"]: row for row in report.accounting}
    assert counted["clicks"]["in"] == counted["clicks.window"]["in"] == counted["clicks.group"]["in"] == RECORDS


@contextmanager
def running(file: Path, quick_rows: int) -> Iterator[subprocess.Popen[bytes]]:
    """The job in processes of its own, all of which are killed in the end."""
    run = uuid.uuid4().hex
    environment = {**os.environ, MARK: run, "HEADRACE_QUICK_ROWS": str(quick_rows)}
    command = [sys.executable, "-m", "headrace", "run", str(file), "--rows-per-epoch", "60"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            yield process
        finally:
            kill(run)
            wait_until_gone(run)


def wait_for_epochs(place: JobDirectory, count: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until this many more epochs are committed."""
    first, deadline = place.committed_epoch(), time.monotonic() + 240
    while place.committed_epoch() < first + count:
        assert process.poll() is None, (process.stderr.read() if process.stderr else b"").decode()
        assert time.monotonic() < deadline
        time.sleep(0.005)
