"""What a run of a job tells when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.core.durations import spelled
from headrace.jobs.directory import Record
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.log.tail import Tail, tail
from headrace.operators.accounting import ENDS, KEPT
from headrace.operators.hot import HotKey, hottest
from headrace.plan.topics import accounting_topic, hot_topic

_COUNTS = ("in", *ENDS)
_HOT = 10_000


@dataclass(frozen=True)
class Report:
    """Where a job stands after a run: the last epoch, the watermark, and what became of every record since the job began."""

    job: str
    epoch: int
    watermark: datetime | None
    seconds: float
    accounting: list[dict[str, Any]]
    """One dictionary a step: step, in, out, late, duplicate, filtered, dead_letter."""
    bounds: Mapping[str, timedelta] = field(default_factory=dict)
    """What a loss budget has chosen for each stream that has one."""
    hot_keys: list[HotKey] = field(default_factory=list)
    """Keys with a large share of the records of a step, by samples of the last epochs."""
    state: list[dict[str, Any]] = field(default_factory=list)
    """What each step with state remembers: step, rows, bytes."""

    def __str__(self) -> str:
        time = f", watermark {self.watermark:%Y-%m-%d %H:%M:%S} UTC" if self.watermark else ""
        chosen = "".join(f", {name} bounded by {spelled(bound)}" for name, bound in self.bounds.items())
        trouble = "".join(f"\n{hot}" for hot in self.hot_keys if hot.trouble)
        return f"job {self.job!r} at epoch {self.epoch:,}{time}{chosen}, after {timedelta(seconds=round(self.seconds))}{trouble}"


def totals(log: Log, app: str, record: Record) -> list[dict[str, Any]]:
    """The counts of a job's steps over all its epochs, in the order in which records meet them."""
    counted = epochs(log, app, record).group_by("step", maintain_order=True).agg(pl.col(_COUNTS).sum())
    return sorted(counted.to_dicts(), key=lambda row: record.place_of(row["step"]))


def state(log: Log, app: str, record: Record) -> list[dict[str, Any]]:
    """What the steps of a job remember after its last epoch: step, rows, bytes."""
    told = _entries(log, app, record).drop_nulls(KEPT)
    last = told.filter(pl.col("epoch") == pl.col("epoch").max()).group_by("step").agg(pl.col(KEPT).sum())
    found = last.rename(dict(zip(KEPT, ("rows", "bytes"), strict=True))).to_dicts()
    return sorted(found, key=lambda row: record.place_of(row["step"]))


def hot_keys(log: Log, app: str) -> list[HotKey]:
    """The hot keys that a job has met."""
    # More than are written in the epochs that count.
    newest = Tail(last=_HOT, columns=("epoch", "step", "key", "records", "gathers"))
    try:
        tables = list(tail(log, hot_topic(app), newest))
    except UnknownTopic:
        return []
    return hottest(pl.DataFrame(pl.from_arrow(pa.concat_tables(tables)))) if tables else []


def epochs(log: Log, app: str, record: Record) -> pl.DataFrame:
    """The counts of a job's steps, a row for each epoch and step in which records moved."""
    # Each task counts for itself.
    counted = _entries(log, app, record).group_by("epoch", "step", maintain_order=True).agg(pl.col(_COUNTS).sum())
    counted = counted.filter(pl.any_horizontal(pl.col(_COUNTS) != 0))
    # A function of the user's may drop and multiply records unseen, and takes them in and gives them out in different tasks: what did
    # not come out was filtered; more than came in is counted where it goes. All other counts were checked before they were written.
    out, missing = pl.min_horizontal("out", "in"), pl.col("in") - pl.sum_horizontal(ENDS)
    return counted.sort("epoch", maintain_order=True).with_columns(out, filtered=pl.col("filtered") + pl.max_horizontal(missing, 0))


def _entries(log: Log, app: str, record: Record) -> pl.DataFrame:
    """What the tasks of a job have written into its books."""
    columns = ["epoch", "step", *_COUNTS, *KEPT]
    try:
        table = log.read(accounting_topic(app), columns=["job", *columns])
    except UnknownTopic:
        return pl.DataFrame(schema={name: pl.String if name == "step" else pl.Int64 for name in columns})
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.filter(pl.col("job") == record.id).drop("job")
