"""What a job should have made: the epochs that it planned, once each, by the same operators in this process, and no faults."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.app import App
from headrace.connectors.log.input import LogInput
from headrace.operators.time import BEGINNING, EpochTime
from headrace.plan.nodes import Source
from headrace.plan.plan import Plan
from headrace.testing.driver import TestDriver

Offset = dict[str, Any]


class PlannedEpochs:
    """The offsets of a job's epochs, collected while it runs: Spark keeps only the last hundred."""

    def __init__(self, checkpoint: Path) -> None:
        self._directory = checkpoint / "offsets"
        self._found: dict[int, Offset] = {}

    def look(self) -> None:
        """Take in what has come since."""
        for file in self._directory.glob("[0-9]*"):
            if file.name.isdecimal() and int(file.name) not in self._found:
                self._found[int(file.name)] = json.loads(file.read_text(encoding="utf-8").splitlines()[-1])

    def __iter__(self) -> Iterator[Offset]:
        numbers = sorted(self._found)
        assert numbers == list(range(len(numbers))), "an epoch was planned and forgotten"
        return (self._found[number] for number in numbers)


def replayed(app: App, shards: int, planned: PlannedEpochs) -> TestDriver:
    """A driver that has taken in all epochs of a job, each with the very records and the very time that the job had."""
    plan = app.plan()
    driver, before = TestDriver(app, shards=shards), dict[str, Any]()
    inputs = {source.name: LogInput(app.log.path, source.name, tuple(source.columns.names), source.time) for source in plan.sources}
    for offset in planned:
        batches = {name: records for name, source in inputs.items() if (records := _records(source, name, before, offset)) is not None}
        marks = (before.get("watermark", BEGINNING), offset["watermark"])
        clocks = (before.get("clock", BEGINNING), offset["clock"])
        driver.replay(batches, EpochTime(offset["epoch"], *marks, offset["idle"], *clocks), offset["limits"])
        before = offset
    return driver


def check_that_it_can_be_replayed(app: App) -> Plan:
    """Refuse an app whose steps only Spark can evaluate: there would be nothing to compare with."""
    TestDriver(app)
    return app.plan()


def _records(source: LogInput, name: str, before: Mapping[str, Any], offset: Offset) -> pl.DataFrame | None:
    starts = before["positions"][name] if before else {}
    spans = [(int(partition), starts.get(partition, 0), end) for partition, end in offset["positions"][name].items()]
    batches = [batch for partition, first, last in spans if last > first for batch in source.read(partition, first, last)]
    if not batches:
        return None
    frame = pl.from_arrow(pa.Table.from_batches(batches))
    assert isinstance(frame, pl.DataFrame)
    return frame


def taken(planned: PlannedEpochs, sources: tuple[Source, ...]) -> dict[str, int]:
    """How many records of each stream the epochs have taken in, by their offsets; a topic of chaos begins at zero."""
    offsets = list(planned)
    last = offsets[-1]["positions"] if offsets else {}
    return {source.name: sum(last.get(source.name, {}).values()) for source in sources}
