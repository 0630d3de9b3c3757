"""The report of a run when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html import escape
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from headrace.core import html
from headrace.core.durations import spelled
from headrace.engine.hot_keys import HotKey, hottest
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.log.tail import Tail, tail
from headrace.plan.topics import hot_topic

if TYPE_CHECKING:
    from headrace.jobs.ending import Ending

_HOT = 10_000


@dataclass(frozen=True)
class Report:
    """The state of a job after a run: the last epoch, the watermark, and the fate of every record since the job began."""

    job: str
    epoch: int
    watermark: datetime | None
    seconds: float
    accounting: list[dict[str, Any]]
    """One dictionary per step: step, in, out, late, duplicate, filtered, dead_letter, partly_late, late_reason, dead_letter_reason."""
    bounds: Mapping[str, timedelta] = field(default_factory=dict)
    """The bounds that loss budgets have chosen, by stream."""
    hot_keys: list[HotKey] = field(default_factory=list)
    """Keys with a large share of the records of a step, by samples of the last epochs."""
    state: list[dict[str, Any]] = field(default_factory=list)
    """The state of each step that has one: step, rows, bytes."""
    ended: Ending | None = None
    """How `until="end"` declared the input complete, and what came too late since then; None if it did not."""
    models: list[dict[str, Any]] = field(default_factory=list)
    """The last model of each step that scores records: step, model, scorings, scoring_micros."""
    restarts: int = 0
    """How often the job failed in this run for a reason that may be temporary, and was started again."""

    def facts(self) -> dict[str, Any]:
        """The state of the job, for programs; the accounting is separate."""
        return {
            "job": self.job,
            "epoch": self.epoch,
            "watermark": self.watermark,
            "seconds": round(self.seconds, 1),
            "restarts": self.restarts,
            "ended_in": None if self.ended is None else self.ended.epoch,
            "late_since_end": 0 if self.ended is None else self.ended.late,
            "bounds": self.bounds,
            **{name: sum(row[name] for row in self.accounting) for name in ("late", "partly_late", "dead_letter")},
        }

    def _repr_html_(self) -> str:
        """The report in a notebook: where the job stands, and what became of every record."""
        rows = [{name: row[name] for name in _columns(self.accounting)} for row in self.accounting]
        return f"<pre>{escape(str(self))}</pre>{html.part('accounting', html.table(rows) if rows else '')}"

    def __str__(self) -> str:
        time = f", watermark {self.watermark:%Y-%m-%d %H:%M:%S} UTC" if self.watermark else ""
        chosen = "".join(f", {name} bounded by {spelled(bound)}" for name, bound in self.bounds.items())
        trouble = "".join(f"\n{line}" for line in (*missed(self.accounting), *(hot for hot in self.hot_keys if hot.trouble)))
        restarts = f", {self.restarts} restarts" if self.restarts else ""
        ended = f"\n{self.ended}" if self.ended is not None else ""
        models = "".join(f"\n{line}" for line in _asked(self.models))
        seconds = timedelta(seconds=round(self.seconds))
        return f"job {self.job!r} at epoch {self.epoch:,}{time}{chosen}, after {seconds}{restarts}{ended}{models}{trouble}"


def _columns(accounting: list[dict[str, Any]]) -> list[str]:
    """The counts of an accounting, without the reasons, which are long."""
    return [name for name in accounting[0] if not name.endswith("_reason")] if accounting else []


def _asked(models: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each step with a model: which, how many batches it has scored, and how long one took."""
    for row in models:
        each = row["scoring_micros"] / row["scorings"] / 1_000
        yield f"{row['step']}: scored by {row['model']}, {row['scorings']:,} batches, {each:.2f} ms each"


def missed(accounting: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each step with records that are missing in some or in every result: their number, and the reason of the first."""
    kinds = (("late", "late"), ("partly_late", "partly late"), ("dead_letter", "dead letters"))
    for row in accounting:
        said = [
            f"{row[name]:,} {words.removesuffix('s') if row[name] == 1 else words}{_why(row.get(f'{name}_reason'))}"
            for name, words in kinds
            if row[name]
        ]
        if said:
            yield f"{row['step']}: {'; '.join(said)}"


def _why(reason: str | None) -> str:
    return f" (first: {reason})" if reason else ""


def hot_keys(log: Log, app: str) -> list[HotKey]:
    """The hot keys that a job has met."""
    # More than are written in the epochs that count.
    newest = Tail(last=_HOT, columns=("epoch", "step", "key", "records", "gathers"))
    try:
        tables = list(tail(log, hot_topic(app), newest))
    except UnknownTopic:
        return []
    return hottest(pl.DataFrame(pl.from_arrow(pa.concat_tables(tables)))) if tables else []
