"""The life of a job: refused, restarted after a failure, flushed, ended."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.core.settings import Settings
from headrace.jobs.directory import JobDirectory

pytestmark = pytest.mark.usefixtures("spark")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def settings(home: Path, **options: Any) -> Settings:
    return Settings(home=home, master="local[2]", **options)


def send(app: hr.App, *seconds: int) -> None:
    with app.log.producer(acks="all") as producer:
        for second in seconds:
            producer.send("clicks", {"url": "/", "at": NOON + timedelta(seconds=second)})


def clicks(app: hr.App) -> Any:
    return app.stream("clicks", "url string, at timestamp", time="at", watermark=hr.bounded("0s"))


def dying(app: hr.App, died: Path, times: int) -> None:
    """A view behind a function that kills its own worker, a number of times."""

    def on_event(event: Any, state: Any) -> Any:
        deaths = len(died.read_text()) if died.exists() else 0
        if deaths < times:
            died.write_text("x" * (deaths + 1))
            os.kill(os.getpid(), signal.SIGKILL)
        state.n = (state.n or 0) + 1
        yield {"url": event.url, "n": state.n}

    counted = clicks(app).process(on_event, by="url", state="n int", returns="url string, n int", ttl=None)
    app.view("counted", counted, key=["url", "n"])


def test_a_job_whose_worker_was_killed_starts_again_and_counts_every_record_once(tmp_path: Path) -> None:
    app = hr.App("killed", settings=settings(tmp_path))
    dying(app, tmp_path / "died", times=2)
    # The last one waits for the watermark.
    send(app, 1, 2, 3, 10)
    report = app.run(until="caught-up")
    assert report.restarts == 2
    assert "2 restarts" in str(report)
    assert sorted(row["n"] for row in app.read("counted").to_pylist()) == [1, 2, 3]
    assert {row["step"]: row["in"] for row in report.accounting}["clicks"] == 4


def test_a_job_that_fails_again_and_again_stops_after_the_allowed_restarts_and_goes_on_later(tmp_path: Path) -> None:
    app = hr.App("killed", settings=settings(tmp_path, restarts=1))
    dying(app, tmp_path / "died", times=2)
    send(app, 1, 2, 10)
    with pytest.raises(hr.JobError, match="a Python worker of Spark ended without a message"):
        app.run(until="caught-up")
    assert (tmp_path / "died").read_text() == "xx"
    assert app.run(until="caught-up").restarts == 0
    assert sorted(row["n"] for row in app.read("counted").to_pylist()) == [1, 2]


def test_a_first_run_that_spark_refuses_fixes_nothing(tmp_path: Path) -> None:
    app = hr.App("shaped", settings=settings(tmp_path))
    app.view("shapes", clicks(app).transform(lambda rows: rows.selectExpr("no_such_column as url"), schema="url string"), key="url")
    with pytest.raises(hr.HeadraceError):
        app.run(until="caught-up")
    assert JobDirectory(tmp_path, "shaped").record() is None
    assert [topic.name for topic in app.log.topics()] == ["clicks"]
    mended = hr.App("shaped", settings=settings(tmp_path))
    mended.view("shapes", clicks(mended).group("url", ttl=None).agg(n="count(*)"))
    send(mended, 1)
    mended.run(until="caught-up")
    assert [row["n"] for row in mended.read("shapes").to_pylist()] == [1]
    other = hr.App("other", settings=settings(tmp_path))
    other.view("shapes", clicks(other).group("url", ttl=None).agg(n="count(*)"))
    with pytest.raises(hr.JobError, match="view 'shapes' of app 'other' is a view of app 'shaped' already"):
        other.run(until="caught-up")
    assert JobDirectory(tmp_path, "other").record() is None


def test_a_flush_closes_windows_and_goes_on_and_an_end_is_told_in_every_later_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = hr.App("minutes", settings=settings(tmp_path))
    app.view("per_minute", clicks(app).window(hr.tumbling("1 minute"), by="url").agg(n="count(*)"))

    def counted() -> list[int]:
        return [row["n"] for row in sorted(app.read("per_minute").to_pylist(), key=lambda row: row["window_start"])]

    def warned() -> str:
        said = "".join(record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
        caplog.clear()
        return said

    send(app, 1, 2)
    report = app.run(until="flushed")
    assert (counted(), report.watermark, report.ended) == ([2], NOON + timedelta(minutes=1), None)
    send(app, 3, 61)
    app.run(until="flushed")
    assert counted() == [2, 1]
    assert [row["at"] for row in app.log.read("clicks.late").to_pylist()] == [NOON + timedelta(seconds=3)]
    assert warned() == ""
    ended = app.run(until="end")
    assert "declares the input complete forever" in warned()
    assert ended.ended is not None
    assert (ended.ended.epoch, ended.ended.late) == (ended.epoch, 0)
    send(app, 1_000, 2_000)
    later = app.run(until="caught-up")
    assert "was declared complete" in warned()
    assert later.ended is not None
    assert (later.ended.epoch, later.ended.late) == (ended.epoch, 2)
    assert "2 records were late since then" in str(later)
    assert counted() == [2, 1]


def test_copies_of_a_job_that_run_in_one_spark_keep_their_own_state(tmp_path: Path) -> None:
    def run(home: Path, *seconds: int) -> list[int]:
        app = hr.App("copied", settings=settings(home))
        app.view("per_url", clicks(app).group("url", ttl=None).agg(n="count(*)"))
        send(app, *seconds)
        app.run(until="caught-up")
        counted = [row["n"] for row in app.read("per_url").to_pylist()]
        app.log.close()
        return counted

    assert run(tmp_path / "original", 1) == [1]
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    assert run(tmp_path / "original", 2, 3) == [3]
    # Both are at epoch 2 of their third run then, and only the records of epoch 2 differ.
    assert run(tmp_path / "copy") == [1]
    assert run(tmp_path / "copy", 2, 3, 4, 5) == [5]
    assert run(tmp_path / "original", 4) == [4]
