"""The accounting of a job: what its tasks wrote into the accounting topic, added up.

The sums over finished epochs are in a file of the job, so that a query reads only what came since. The epochs themselves are kept for a
while only.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.core.files.replacing import replace_text
from headrace.engine.accounting import ENDS, KEPT, REASONS, SCORED, UNSUMMED, WRITTEN
from headrace.jobs.directory import Record
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.log.topic import Topic
from headrace.plan.topics import accounting_topic

COUNTS = ("in", *ENDS, *UNSUMMED)
FIRST = [pl.col(name).drop_nulls().first() for name in REASONS]
# The number of epochs that can be queried one by one, and the number that is added up at a time.
KEPT_EPOCHS, _AT_A_TIME = 10_000, 500
COLUMNS = ("epoch", "step", *COUNTS, *REASONS, *KEPT, *WRITTEN, *SCORED)
_WRITTEN = {"step": pl.String, **dict.fromkeys(WRITTEN, pl.Int64)}
_SCORED = {"step": pl.String, "model": pl.String, **dict.fromkeys(SCORED[1:], pl.Int64)}


@dataclass
class Sums:
    """The sums over the epochs up to `epoch`; the records from `offset` on are not included."""

    job: str
    epoch: int = 0
    offset: int = 0
    steps: list[dict[str, Any]] = field(default_factory=list)
    kept: list[dict[str, Any]] = field(default_factory=list)
    """The state of each step at the end of the last epoch that counted it."""
    marks: list[tuple[int, int]] = field(default_factory=list)
    """Epochs, and offsets behind their records."""
    written: list[dict[str, Any]] = field(default_factory=list)
    """How often and for how long tasks wrote to each output."""
    scored: list[dict[str, Any]] = field(default_factory=list)
    """The last model of each step that has one, and how often and for how long tasks asked its models."""


class JobAccounting:
    """The accounting of one job; without a file, everything in the topic is read."""

    def __init__(self, log: Log, app: str, record: Record, file: Path | None = None) -> None:
        self._log, self._topic, self._record, self._file = log, accounting_topic(app), record, file
        self._sums: Sums | None = None

    def totals(self) -> list[dict[str, Any]]:
        """The counts of the steps over all epochs, in the order in which records meet them."""
        sums = self._present()
        return sorted(sums.steps, key=lambda row: self._record.place_of(row["step"]))

    def state(self) -> list[dict[str, Any]]:
        """The state sizes of the steps after the last epoch: step, rows, bytes."""
        found = [{"step": row["step"], "rows": row[KEPT[0]], "bytes": row[KEPT[1]]} for row in self._present().kept]
        return sorted(found, key=lambda row: self._record.place_of(row["step"]))

    def writes(self) -> list[dict[str, Any]]:
        """How often tasks wrote to each view and sink, and for how long in all: step, writes, write_micros."""
        return sorted(self._present().written, key=lambda row: self._record.place_of(row["step"]))

    def models(self) -> list[dict[str, Any]]:
        """The last model of each step that has one, and how often and for how long its models were asked: step, model, scorings,
        scoring_micros."""
        return sorted(self._present().scored, key=lambda row: self._record.place_of(row["step"]))

    def epochs(self) -> pl.DataFrame:
        """The counts of the steps, a row for each epoch and step in which records moved; of the last epochs only."""
        return by_epoch(self._entries(0)).drop("_offset")

    def close(self, done: int, *, few: bool = False) -> None:
        """Add up the epochs up to `done`, which no task writes to any more, and drop old ones; with `few`, only if there are many.

        Only the driver of the job may call it.
        """
        sums = self._stored()
        if self._file is None or done <= sums.epoch or (few and done - sums.epoch < _AT_A_TIME):
            return
        entries = self._entries(sums.offset).filter(pl.col("epoch") <= done)
        if not entries.is_empty():
            sums = added(sums, entries)
        marks = [*sums.marks, (done, sums.offset)]
        old = [offset for epoch, offset in marks if epoch <= done - KEPT_EPOCHS]
        sums.epoch, sums.marks = done, [mark for mark in marks if mark[0] > done - KEPT_EPOCHS]
        # First written, then dropped.
        replace_text(self._file, json.dumps(asdict(sums)))
        self._sums = sums
        if old:
            self._log.delete_records(self._topic, 0, old[-1])

    def _present(self) -> Sums:
        sums = self._stored()
        entries = self._entries(sums.offset)
        return sums if entries.is_empty() else added(sums, entries)

    def _stored(self) -> Sums:
        if self._sums is None:
            self._sums = Sums(self._record.id) if self._file is None else stored_sums(self._file, self._record.id)
        return self._sums

    def _entries(self, offset: int) -> pl.DataFrame:
        """The entries of the job's tasks from an offset on."""
        try:
            topic = self._log.topic(self._topic)
            start = self._log.partition(topic, 0).state().start
            table = self._log.read(self._topic, columns=readable(topic), start=max(offset, start))
        except UnknownTopic:
            return no_entries()
        return entries_in(table, self._record.id)


def no_entries() -> pl.DataFrame:
    """Entries of no epoch."""
    texts = ("step", *REASONS, "model")
    return pl.DataFrame(schema={name: pl.String if name in texts else pl.Int64 for name in ("_offset", *COLUMNS)})


def readable(topic: Topic) -> list[str]:
    """The columns of entries that an accounting topic has; one of an earlier version lacks some until its job runs again."""
    return ["job", "_offset", *(name for name in COLUMNS if name in topic.columns.names)]


def entries_in(table: pa.Table, job: str) -> pl.DataFrame:
    """The entries of a job among the records of its topic."""
    found, empty = pl.DataFrame(table).filter(pl.col("job") == job).drop("job"), no_entries()
    return pl.concat([empty, found], how="diagonal").select(empty.columns)


def stored_sums(file: Path, job: str) -> Sums:
    """The stored sums of a job; those of an earlier job of the same name do not count."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if found.get("job") != job:
        return Sums(job)
    return Sums(**{**found, "marks": [tuple(mark) for mark in found["marks"]]})


def by_epoch(entries: pl.DataFrame) -> pl.DataFrame:
    """The entries of all tasks as one row for each epoch and step in which records moved."""
    last = pl.col("_offset").max()
    counted = entries.group_by("epoch", "step", maintain_order=True).agg(pl.col(COUNTS).sum(), *FIRST, last)
    counted = counted.filter(pl.any_horizontal(pl.col(COUNTS) != 0))
    # A function of the user's may drop and multiply records unobserved, with input and output in different tasks: input that did not come
    # out was filtered; additional output is counted where it goes. All other counts were checked before they were written.
    out, missing = pl.min_horizontal("out", "in"), pl.col("in") - pl.sum_horizontal(ENDS)
    return counted.sort("epoch", maintain_order=True).with_columns(out, filtered=pl.col("filtered") + pl.max_horizontal(missing, 0))


def added(sums: Sums, entries: pl.DataFrame) -> Sums:
    """The sums with more epochs in them; an epoch is added as a whole."""
    new = by_epoch(entries).select("step", *COUNTS, *REASONS)
    before = pl.DataFrame(sums.steps, schema=new.schema)
    steps = pl.concat([before, new]).group_by("step", maintain_order=True).agg(pl.col(COUNTS).sum(), *FIRST)
    told = entries.drop_nulls(KEPT)
    last = told.filter(pl.col("epoch") == pl.col("epoch").max()).group_by("step", maintain_order=True).agg(pl.col(KEPT).sum())
    kept = last.to_dicts() if last.height else sums.kept
    wrote = pl.concat([pl.DataFrame(sums.written, schema=_WRITTEN), entries.drop_nulls(WRITTEN).select(list(_WRITTEN))])
    written = wrote.group_by("step", maintain_order=True).agg(pl.col(WRITTEN).sum()).to_dicts()
    offset = int(entries.get_column("_offset").max()) + 1  # type: ignore[arg-type] # there are entries
    asked = pl.concat([pl.DataFrame(sums.scored, schema=_SCORED), entries.drop_nulls("model").select(list(_SCORED))])
    scored = asked.group_by("step", maintain_order=True).agg(pl.col("model").last(), pl.col(SCORED[1:]).sum()).to_dicts()
    return Sums(sums.job, sums.epoch, offset, steps.to_dicts(), kept, sums.marks, written, scored)
