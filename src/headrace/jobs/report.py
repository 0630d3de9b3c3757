"""What a run of a job tells when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from headrace.core.durations import spelled
from headrace.jobs.directory import Record
from headrace.jobs.outputs import accounting_topic
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.operators.accounting import ENDS
from headrace.operators.hot import HotKey, hot_topic, hottest

_COUNTS = ("in", *ENDS)


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

    def __str__(self) -> str:
        time = f", watermark {self.watermark:%Y-%m-%d %H:%M:%S} UTC" if self.watermark else ""
        chosen = "".join(f", {name} bounded by {spelled(bound)}" for name, bound in self.bounds.items())
        trouble = "".join(f"\n{hot}" for hot in self.hot_keys if hot.trouble)
        return f"job {self.job!r} at epoch {self.epoch:,}{time}{chosen}, after {timedelta(seconds=round(self.seconds))}{trouble}"


def totals(log: Log, app: str, record: Record) -> list[dict[str, Any]]:
    """The counts of a job's steps over all its epochs, in the order in which records meet them."""
    counted = epochs(log, app, record).group_by("step", maintain_order=True).agg(pl.col(_COUNTS).sum())
    return sorted(counted.to_dicts(), key=lambda row: record.place_of(row["step"]))


def hot_keys(log: Log, app: str) -> list[HotKey]:
    """The hot keys that a job has met."""
    try:
        table = log.read(hot_topic(app), columns=["epoch", "step", "key", "records", "gathers"])
    except UnknownTopic:
        return []
    seen = pl.from_arrow(table)
    assert isinstance(seen, pl.DataFrame)
    return hottest(seen)


def epochs(log: Log, app: str, record: Record) -> pl.DataFrame:
    """The counts of a job's steps, a row for each epoch and step in which records moved."""
    try:
        table = log.read(accounting_topic(app), columns=["job", "epoch", "step", *_COUNTS])
    except UnknownTopic:
        return pl.DataFrame(schema={"epoch": pl.Int64, "step": pl.String} | dict.fromkeys(_COUNTS, pl.Int64))
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    # Each task counts for itself.
    counted = frame.filter(pl.col("job") == record.id).group_by("epoch", "step", maintain_order=True).agg(pl.col(_COUNTS).sum())
    # A function of the user's may drop and multiply records unseen, and takes them in and gives them out in different tasks: what did
    # not come out was filtered; more than came in is counted where it goes. All other counts were checked before they were written.
    out, missing = pl.min_horizontal("out", "in"), pl.col("in") - pl.sum_horizontal(ENDS)
    return counted.sort("epoch", maintain_order=True).with_columns(out, filtered=pl.col("filtered") + pl.max_horizontal(missing, 0))
