"""The facts of a running job at one moment, as a line of text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from headrace.core.durations import spelled
from headrace.engine.hot_keys import HotKey
from headrace.operators.event_time.watermark import Holder


@dataclass(frozen=True)
class Missed:
    """Records of a run that are missing in some or in every result: their number, and the reason of the first of a kind."""

    late: int = 0
    partly_late: int = 0
    dead_letter: int = 0
    late_reason: str | None = None
    dead_letter_reason: str | None = None

    def __str__(self) -> str:
        said = [
            f"late {self.late:,}{_first(self.late_reason)}" if self.late else "",
            f"partly late {self.partly_late:,}" if self.partly_late else "",
            f"dead letters {self.dead_letter:,}{_first(self.dead_letter_reason)}" if self.dead_letter else "",
        ]
        return "   ".join(part for part in said if part)


@dataclass(frozen=True)
class Progress:
    """A job at one moment. Its counts are since the run began."""

    epoch: int
    watermark: datetime | None
    taken: int
    waiting: int
    rate: float
    epoch_seconds: float | None = None
    """How long the last epoch took."""
    bounds: Mapping[str, timedelta] = field(default_factory=dict)
    """The bounds that loss budgets have chosen, by stream."""
    hot_keys: Sequence[HotKey] = ()
    """Keys with a large share of the records of a step, those with the largest first."""
    lag_seconds: float | None = None
    """By how much event time the records that wait go beyond those taken in; None where no record has a time."""
    holder: Holder | None = None
    """The stream and partition that the watermark waits for; None where all are silent, or none has a watermark."""
    missed: Missed = field(default_factory=Missed)
    round: int = 0
    """How often the facts that cost some time have been read: lag in seconds, and what was missed."""
    restarts: int = 0
    """How often the job failed in this run and was started again."""

    def __str__(self) -> str:
        lag = f"lag {self.waiting:,} rows"
        if self.lag_seconds is not None and self.waiting:
            lag += f", {spelled(timedelta(seconds=round(self.lag_seconds)))}"
        time = f"{self.watermark:%Y-%m-%d %H:%M:%S}" if self.watermark else "none yet"
        held = f" (held by {self.holder})" if self.holder else ""
        chosen = [f"{name} bounded by {spelled(bound)}" for name, bound in self.bounds.items()]
        # A key whose records all go to one shard is more important than one with a larger share that costs nothing.
        worst = sorted(self.hot_keys, key=lambda hot: not hot.trouble)[:1]
        hot = [f"hot key {key.key} {key.share:.0%} of {key.step}" for key in worst]
        restarts = [f"{self.restarts} restarts"] * bool(self.restarts)
        rows = [f"{self.taken:,} rows", f"{self.rate:,.0f} rows/s", lag]
        parts = [f"epoch {self.epoch:,}", *rows, f"watermark {time}{held}", str(self.missed), *chosen, *hot, *restarts]
        return "   ".join(part for part in parts if part)

    def to_json(self) -> dict[str, Any]:
        """The facts as plain values, durations in seconds."""
        return {
            "epoch": self.epoch,
            "records": self.taken,
            "records_per_second": round(self.rate, 1),
            "lag": self.waiting,
            "lag_seconds": self.lag_seconds,
            "watermark": None if self.watermark is None else self.watermark.isoformat().replace("+00:00", "Z"),
            "held_by": None if self.holder is None else {"stream": self.holder.stream, "partition": self.holder.partition},
            "late": self.missed.late,
            "late_reason": self.missed.late_reason,
            "partly_late": self.missed.partly_late,
            "dead_letter": self.missed.dead_letter,
            "dead_letter_reason": self.missed.dead_letter_reason,
            "epoch_seconds": self.epoch_seconds,
            "restarts": self.restarts,
            "bounds": {name: bound.total_seconds() for name, bound in self.bounds.items()},
            "hot_keys": [{"key": hot.key, "share": round(hot.share, 3), "step": hot.step} for hot in self.hot_keys],
        }


def _first(reason: str | None) -> str:
    return f" (first: {reason})" if reason else ""
