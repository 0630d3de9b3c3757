"""A sink that is slower than its input: what waits, waits in the log, and an epoch stays as large as it may be."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headrace as hr
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.start import run as running
from tests.support.http_service import HttpService, served

BOUND, FIRST, MORE = 20, 60, 240


class Slow(HttpService):
    """Takes some records at once, and no more until it is let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.stuck, self.on = threading.Event(), threading.Event()

    def answer(self, headers: Mapping[str, str], record: dict[str, Any]) -> int:
        if len(self.taken) >= BOUND // 2:
            self.stuck.set()
            self.on.wait()
        return super().answer(headers, record)


@pytest.fixture
def slow() -> Iterator[Slow]:
    with served(Slow()) as service:
        yield service
        service.on.set()


def test_a_slow_sink_holds_up_its_job_and_fills_no_memory(
    spark: SparkSession, tmp_path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "ROWS_PER_EPOCH", BOUND)
    app = hr.App("alerts", home=tmp_path)
    app.sink(app.stream("readings", schema="n int"), hr.http(slow.url), name="alerts")
    place = JobDirectory(tmp_path, "alerts")
    _send(app, range(FIRST))
    seen: list[tuple[int, int]] = []

    def look() -> None:
        """While the service takes nothing, much more comes in, and the job begins no other epoch."""
        slow.stuck.wait()
        _send(app, range(FIRST, FIRST + MORE))
        seen.append((place.committed_epoch(), len([*(place.checkpoint / "offsets").glob("[0-9]*")])))
        slow.on.set()

    looking = threading.Thread(target=look)
    looking.start()
    app.run(until="caught-up")
    looking.join()
    report = app.run(until="caught-up")
    assert seen == [(0, 1)]
    assert sorted(record["n"] for record in slow.taken.values()) == list(range(FIRST + MORE))
    record = place.record()
    assert record is not None
    counted = JobAccounting(app.log, "alerts", record).epochs()
    sizes = counted.filter(step="readings").get_column("in").to_list()
    # Each partition is read on by one record at least.
    assert max(sizes) <= BOUND + 1
    assert (sum(sizes), report.epoch) == (FIRST + MORE, len(sizes))


def _send(app: hr.App, numbers: range) -> None:
    with app.log.producer(acks="all") as producer:
        for n in numbers:
            producer.send("readings", {"n": n})
