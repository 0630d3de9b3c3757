"""The planning of epochs: without a JVM, from a real log and a clock that tests move."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

import headrace as hr
from headrace.core.clock import ManualClock, to_datetime
from headrace.jobs.directory import Record
from headrace.jobs.start.assembly import job_of
from headrace.spark.source import JobReader, Offset
from tests.support.checkpoints import checkpoint

SECOND = timedelta(seconds=1)


class Planner:
    """An app's epochs, planned one after the other as Spark asks for them."""

    def __init__(self, home: Path, clock: ManualClock) -> None:
        self.app, self.clock = hr.App("planned", home=home), clock
        self.offset: Offset | None = None

    def send(self, stream: str, *seconds: float) -> None:
        noon = ManualClock().now()
        with self.app.log.producer() as producer:
            for second in seconds:
                producer.send(stream, {"key": "k", "at": to_datetime(noon + round(second * 1_000_000))})

    def plan(self, *, rows: int | None = None, until: str | None = None) -> Offset | None:
        """The offset of the next epoch, as Spark hands it back; None if there is nothing to do."""
        log = self.app.log
        job = job_of(self.app.plan(), Record("planned-1", 2, 1, ""), log, until=until)
        reader = JobReader(replace(job, clock=self.clock))
        if until is not None:
            reader.prepareForTriggerAvailableNow()
        if self.offset is None:
            self.offset = json.loads(json.dumps(reader.initialOffset()))
        limit: ReadLimit = ReadAllAvailable() if rows is None else ReadMaxRows(rows)
        found = reader.latestOffset(self.offset, limit)
        assert found == reader.latestOffset(self.offset, limit)
        if found == self.offset:
            return None
        self.offset = json.loads(json.dumps(found))
        return self.offset

    def begin(self) -> None:
        """Plan the first epoch, which has no records."""
        first = self.plan()
        assert first is not None
        assert first["epoch"] == 1


@pytest.fixture
def planner(tmp_path: Path) -> Planner:
    return Planner(tmp_path, ManualClock())


def stream(planner: Planner, name: str, watermark: Any, **options: Any) -> Any:
    return planner.app.stream(name, "key string, at timestamp", key="key", time="at", watermark=watermark, **options)


def test_the_first_batch_of_a_job_is_its_first_epoch_also_without_records(planner: Planner) -> None:
    planner.app.sink(stream(planner, "clicks", hr.bounded("0s", idle="1 minute")), hr.log("kept"))
    planner.begin()
    assert planner.plan() is None
    planner.clock.advance(timedelta(minutes=2))
    assert planner.plan() is None
    planner.send("clicks", 1)
    second = planner.plan()
    assert second is not None
    assert (second["epoch"], second["positions"]) == (2, {"clicks": {"0": 1}})


@pytest.mark.filterwarnings("ignore::headrace.core.remarks.PlanWarning")
def test_an_epoch_is_begun_when_a_window_of_the_wall_clock_ends_and_never_for_nothing(planner: Planner) -> None:
    clicks = stream(planner, "clicks", hr.perfect())
    planner.app.view("minutes", clicks.window(hr.processing_time("1 minute"), by="key").agg(n="count(*)"))
    planner.app.view("days", clicks.window(hr.processing_time("1 day"), by="key").agg(n="count(*)"))
    planner.clock.advance(10 * SECOND)
    planner.begin()
    assert planner.plan() is None
    planner.send("clicks", 1, 2)
    begun = planner.plan()
    assert begun is not None
    planner.clock.advance(49 * SECOND)
    assert planner.plan() is None
    planner.clock.advance(1 * SECOND)
    ended = planner.plan()
    assert ended is not None
    assert (ended["positions"], ended["clock"] - begun["clock"]) == (begun["positions"], 50_000_000)
    planner.clock.advance(23 * 3600 * SECOND)
    assert planner.plan() is None
    planner.clock.advance(3600 * SECOND)
    assert planner.plan() is not None
    planner.clock.advance(48 * 3600 * SECOND)
    assert planner.plan() is None


def test_a_loss_budget_chooses_in_the_planner_what_it_does_in_the_driver(planner: Planner) -> None:
    rule = hr.loss_budget(0.2, max="1 minute")
    readings = stream(planner, "readings", rule)
    planner.app.view("minutes", readings.window(hr.tumbling("1 minute"), by="key").agg(n="count(*)"))
    driver = hr.TestDriver(planner.app)
    for batch in ([10, 8, 11], [12, 9, 30, 29, 10], [31, 25, 40], [1, 41, 42]):
        planner.send("readings", *batch)
        offset = planner.plan()
        driver.send("readings", [{"key": "k", "at": to_datetime(ManualClock().now()) + second * SECOND} for second in batch])
        assert offset is not None
        assert to_datetime(offset["watermark"]) == driver.watermark
    assert driver.bounds("readings")[0] > 3 * SECOND


def latest(offset: Offset | None, stream: str) -> float:
    assert offset is not None
    return (offset["progress"][stream]["partitions"]["0"][0] - ManualClock().now()) / 1_000_000


def test_two_streams_are_read_side_by_side_in_event_time(planner: Planner) -> None:
    web = stream(planner, "web", hr.perfect(idle="1 hour"), align="10 minutes")
    fax = stream(planner, "fax", hr.perfect(idle="1 hour"), align="10 minutes")
    planner.app.view("orders", web.union(fax).window(hr.tumbling("1 minute"), by="key").agg(n="count(*)"))
    planner.send("web", *range(0, 3000, 5))
    planner.send("fax", *range(0, 3000, 290))
    reached = []
    while (offset := planner.plan()) is not None:
        reached.append((latest(offset, "web"), latest(offset, "fax")))
    # Each goes up to about ten minutes ahead of the next record of the other; at the end the one that has no more is waited for.
    assert reached[0][0] <= 600
    assert reached[-1] == (2995, 2900)
    assert all(abs(web - fax) <= 600 for web, fax in reached)
    assert len(reached) <= 7
    planner.send("web", 3600)
    assert planner.plan() is None
    assert latest(planner.plan(until="caught-up"), "web") == 3600


def test_a_flush_moves_time_past_every_open_window_once_and_takes_later_records(planner: Planner) -> None:
    noon = ManualClock().now()
    visits = stream(planner, "visits", hr.bounded("5s"))
    planner.app.view("counts", visits.window(hr.tumbling("10s"), by="key").agg(visits="count(*)"))
    planner.send("visits", 1, 12)
    taken = planner.plan(until="flushed")
    assert taken is not None
    assert (taken["watermark"], taken["positions"]) == (noon + 7_000_000, {"visits": {"0": 2}})
    flushed = planner.plan(until="flushed")
    assert flushed is not None
    assert (flushed["watermark"], flushed["idle"], flushed["ended"]) == (noon + 20_000_000, True, 0)
    assert planner.plan(until="flushed") is None
    assert planner.plan() is None
    planner.send("visits", 13, 31)
    later = planner.plan()
    assert later is not None
    assert (later["watermark"], later["positions"]) == (noon + 26_000_000, {"visits": {"0": 4}})


def test_the_epoch_that_declared_the_input_complete_stays_known(planner: Planner) -> None:
    planner.app.sink(stream(planner, "clicks", hr.perfect()), hr.log("kept"))
    planner.send("clicks", 1)
    assert [offset and offset["ended"] for offset in (planner.plan(until="end"), planner.plan(until="end"))] == [0, 2]
    assert planner.plan(until="end") is None
    planner.send("clicks", 2)
    later = planner.plan()
    assert later is not None
    assert (later["epoch"], later["ended"]) == (3, 2)


def test_who_plans_epochs_unpacks_the_program_only_for_what_it_alone_tells(planner: Planner) -> None:
    visits = stream(planner, "visits", hr.bounded("0s", idle="1 minute"))
    planner.app.view("counts", visits.window(hr.tumbling("10s"), by="key").agg(visits="count(*)"))
    planner.send("visits", 5)
    shipped = cloudpickle.dumps(job_of(planner.app.plan(), Record("planned-1", 2, 1, ""), planner.app.log, until=None))
    reader = JobReader(replace(pickle.loads(shipped), clock=planner.clock))
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert first["epoch"] == 1
    assert reader._job.packed._program is None
    planner.clock.advance(timedelta(minutes=2))
    # The whole stream is silent: the program says when its last window ends.
    assert reader.latestOffset(first, ReadAllAvailable())["watermark"] == ManualClock().now() + 10 * 1_000_000
    assert reader._job.packed._program is not None


def test_what_an_epoch_takes_in_is_synced_before_a_task_of_it_begins(
    planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner.app.sink(stream(planner, "clicks", hr.perfect()), hr.log("kept"))
    planner.send("clicks", 1)
    reader = JobReader(
        job_of(planner.app.plan(), Record("planned-1", 2, 1, ""), planner.app.log, until=None), tmp_path / "job" / "checkpoint"
    )
    before = reader.initialOffset()
    after = reader.latestOffset(before, ReadAllAvailable())
    # Spark writes it down before it asks for tasks.
    checkpoint(tmp_path / "job" / "checkpoint", offsets=range(1), commits=range(0))
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    assert reader.partitions(before, before) == []
    assert synced == []
    assert len(reader.partitions(before, after)) == 1
    assert (tmp_path / "job" / "checkpoint" / "offsets" / "0").stat().st_ino in synced


def test_a_time_that_is_computed_moves_the_watermark_of_the_log(planner: Planner) -> None:
    app, noon = planner.app, ManualClock().now() // 1_000
    clicks = app.stream("clicks", "url string, ts bigint", key="url", time="timestamp_millis(ts)", watermark=hr.bounded("5 seconds"))
    app.view("per_minute", clicks.window(hr.tumbling("1 minute"), by="url").agg(clicks="count(*)"))
    with app.log.producer() as producer:
        for ts in (noon + 9_000, None, noon + 4_000, 2**62, noon + 1_000 * 86_400):
            producer.send("clicks", {"url": "/", "ts": ts})
    offset = planner.plan()
    assert offset is not None
    # What is no time, or too far ahead, does not count.
    assert offset["watermark"] == (noon + 4_000) * 1_000
    assert offset["positions"] == {"clicks": {"0": 5}}
    assert app.log.topic("clicks").time is None
