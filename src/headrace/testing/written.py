"""A job that only writes: epochs of a view as the tasks of a job write them, committed as Spark commits them, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from headrace.api.declaration import Declaration
from headrace.connectors.log.output import LogOutput
from headrace.connectors.output import Changes, Writer
from headrace.core.columns.schema import schema
from headrace.core.files.replacing import replace_text
from headrace.engine.accounting import COLUMNS, Accounting
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.facts.description import description_of
from headrace.jobs.start.compaction_hold import Holding
from headrace.log import Log
from headrace.plan.topics import accounting_topic


class WrittenView:
    """A view with the key `key`, with as many partitions as there are tasks; `epoch` writes rows and removes keys."""

    def __init__(self, home: Path, columns: str, key: Sequence[str], *, name: str = "totals", tasks: int = 2) -> None:
        self.home, self.name, self.key, self.tasks = home, name, tuple(key), tasks
        self.columns = schema(columns)
        self.log = Log(home / "log")
        self.place = JobDirectory(home, f"{name}-job")
        self.place.path.mkdir(parents=True, exist_ok=True)
        app = Declaration(f"{name}-job")
        stream = app.stream("facts", columns)
        app.view(name, stream.to_table(list(key), ttl=None))
        description_of(app.plan()).write(self.place.path)
        self.log.create_topic(name, partitions=tasks, schema=self.columns, config={"cleanup.policy": "compact"}, exist_ok=True)
        record = Record("job-1", 2 * tasks, tasks, "")
        replace_text(self.place.path / "job.json", json.dumps(asdict(record)))
        self.number = self.place.committed_epoch()
        self._holding = Holding(self.place, self.log, [], [name])
        self._holding.begin()

    def write(self, rows: Sequence[Mapping[str, Any]], removed: Sequence[Mapping[str, Any]] = ()) -> int:
        """Write an epoch without committing it."""
        frame = pl.DataFrame([*rows, *removed], schema=_frame_schema(self.columns))
        return self.write_frame(frame, pl.Series([False] * len(rows) + [True] * len(removed), dtype=pl.Boolean))

    def write_frame(self, frame: pl.DataFrame, gone: pl.Series) -> int:
        """The same with rows as columns; `gone` says which are removed."""
        self.number += 1
        tasks = frame.select(pl.struct(self.key).hash() % self.tasks).to_series() if frame.height else pl.Series([], dtype=pl.UInt64)
        output = LogOutput(self.log.path, self.name, self.key)
        for task in range(self.tasks):
            mine = tasks == task
            if mine.any():
                changes = Changes(frame.filter(mine), gone.filter(mine))
                output.write(Writer("job-1", self.name, task, 1), self.number, changes, _refuse)
        return self.number

    def commit(self, watermark: int = 0) -> int:
        """Commit the last epoch."""
        for kind in ("offsets", "commits"):
            (self.place.checkpoint / kind).mkdir(parents=True, exist_ok=True)
        plan = EpochPlan(self.number, {}, {}, {}, watermark)
        offset = json.dumps(plan.to_json())
        replace_text(self.place.checkpoint / "offsets" / str(self.number - 1), f"v1\n{{}}\n{offset}")
        replace_text(self.place.checkpoint / "commits" / str(self.number - 1), "v1\n{}")
        self._holding.move(plan)
        return self.number

    def epoch(self, rows: Sequence[Mapping[str, Any]], removed: Sequence[Mapping[str, Any]] = (), watermark: int = 0) -> int:
        self.write(rows, removed)
        return self.commit(watermark)

    def close(self) -> None:
        self.log.close()


def accounted(view: WrittenView, epoch: int | range, kept: tuple[str, int, int] | None = None, **steps: Mapping[str, int]) -> None:
    """Write the accounting of an epoch, or of each of several, as the tasks of a job do: for each step its input and the fate of that."""
    epochs = range(epoch, epoch + 1) if isinstance(epoch, int) else epoch
    accounting = Accounting()
    for step, ends in steps.items():
        accounting.add(step, **ends)
    if kept is not None:
        accounting.keep(*kept)
    topic = accounting_topic(view.place.name)
    view.log.create_topic(topic, schema=COLUMNS, exist_ok=True)
    entries = list(accounting.entries())
    rows = pl.DataFrame([{"job": "job-1", "epoch": number, **row} for number in epochs for row in entries])
    LogOutput(view.log.path, topic).write(Writer("job-1", topic, 0, 1), epochs[-1], Changes(rows), _refuse)


def _frame_schema(columns: Any) -> Any:
    frame = pl.from_arrow(columns.empty_table())
    assert isinstance(frame, pl.DataFrame)
    return frame.schema


def _refuse(records: pl.DataFrame, reasons: Sequence[str]) -> None:
    raise AssertionError(f"no record is refused: {reasons}")
