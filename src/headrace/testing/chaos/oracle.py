"""The oracle of chaos: the epochs that a job planned, once each, by the same operators in this process, without faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa

from headrace.app import App
from headrace.checkpoint.epoch_files import stored_plan
from headrace.connectors.log.input import LogInput
from headrace.engine.planning.epoch_plan import EpochPlan, Range
from headrace.plan.nodes import Source
from headrace.plan.plan import Plan
from headrace.testing.driver import TestDriver


class PlannedEpochs:
    """The epochs of a job as planned, collected while it runs: Spark keeps only the last hundred."""

    def __init__(self, checkpoint: Path) -> None:
        self._directory = checkpoint / "offsets"
        self._found: dict[int, EpochPlan] = {}

    def look(self) -> None:
        """Collect new epochs."""
        for file in self._directory.glob("[0-9]*"):
            if file.name.isdecimal() and int(file.name) not in self._found:
                self._found[int(file.name)] = stored_plan(file)

    def __iter__(self) -> Iterator[EpochPlan]:
        numbers = sorted(self._found)
        assert numbers == list(range(len(numbers))), "an epoch was planned and forgotten"
        return (self._found[number] for number in numbers)


def replayed(app: App, shards: int, planned: PlannedEpochs) -> TestDriver:
    """A driver that has processed all epochs of a job, each with exactly the records and the time that the job had."""
    plan = app.plan()
    driver, before = TestDriver(app, shards=shards), EpochPlan(0, {}, {}, {})
    inputs = {source.name: LogInput(app.log.path, source.name, tuple(source.columns.names), None) for source in plan.sources}
    for epoch in planned:
        ranges = epoch.ranges(before)
        batches = {name: records for name, source in inputs.items() if (records := _records(source, name, ranges)) is not None}
        driver.replay(batches, epoch.time(before), epoch.limits)
        before = epoch
    return driver


def check_that_it_can_be_replayed(app: App) -> Plan:
    """Refuse an app whose steps only Spark can evaluate: there would be nothing to compare with."""
    TestDriver(app)
    return app.plan()


def _records(source: LogInput, name: str, ranges: list[Range]) -> pl.DataFrame | None:
    mine = [part for part in ranges if part.source == name]
    batches = [batch for part in mine for batch in source.read(part.partition, part.first, part.last)]
    if not batches:
        return None
    frame = pl.from_arrow(pa.Table.from_batches(batches))
    assert isinstance(frame, pl.DataFrame)
    return frame


def taken(planned: PlannedEpochs, sources: tuple[Source, ...]) -> dict[str, int]:
    """The number of records of each stream in the epochs, by their offsets; a topic of chaos begins at zero."""
    epochs = list(planned)
    last = epochs[-1].positions if epochs else {}
    return {source.name: sum(last.get(source.name, {}).values()) for source in sources}
