"""The event time of a job as a page shows it: the watermark, what holds it back, and the time of each partition."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.core.clock import to_datetime
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.facts.described_time import rebuilt
from headrace.jobs.facts.description import JobDescription
from headrace.operators.event_time.epoch_time import BEGINNING, END
from headrace.operators.event_time.watermark import StreamTime, held_by

# A partition that is this far behind the others holds the watermark back.
_HELD = timedelta(seconds=10)


def event_time(plan: EpochPlan | None, description: JobDescription) -> dict[str, Any]:
    """The watermark, its holder, whether that is far behind, for how long, and the reach of every partition."""
    if plan is None or not BEGINNING < plan.watermark < END:
        return {"watermark": None, "held_by": None, "holder": None, "held": False, "held_since": None, "partitions": []}
    rules = {step.name: rebuilt(step.watermark) for step in description.steps if step.watermark is not None}
    streams = {name: progress for name, progress in plan.progress.items() if name in rules}
    holder = held_by(streams, rules, plan.clock)
    reaches = [
        {
            "stream": name, "partition": partition, "latest": _moment(reach.latest), "seen_at": _moment(reach.seen_at),
            "watermark": _moment(reach.latest - bounds[partition]), "idle": _idle(rules[name], plan.clock, reach.seen_at),
            "holds": holder is not None and (holder.stream, holder.partition) == (name, partition),
        }
        for name, progress in streams.items()
        for bounds in [progress.bounds(rules[name])]
        for partition, reach in sorted(progress.partitions.items())
    ]  # fmt: skip
    held, since = _held(streams, holder)
    return {
        "watermark": _moment(plan.watermark), "held_by": None if holder is None else str(holder),
        "holder": None if holder is None else {"stream": holder.stream, "partition": holder.partition}, "held": held, "held_since": since,
        "partitions": reaches,
    }  # fmt: skip


def _held(streams: Mapping[str, StreamTime], holder: Any) -> tuple[bool, str | None]:
    """Whether the partition that the watermark waits for is far behind all others, and since when it was silent."""
    latest = [reach.latest for progress in streams.values() for reach in progress.partitions.values()]
    if holder is None or holder.partition is None or not latest:
        return False, None
    reach = streams[holder.stream].partitions[holder.partition]
    held = timedelta(microseconds=max(latest) - reach.latest) > _HELD
    return held, _moment(reach.seen_at) if held else None


def _idle(rule: Any, clock: int, seen_at: int) -> bool:
    return rule.idle is not None and timedelta(microseconds=clock - seen_at) >= rule.idle


def _moment(micros: int) -> str:
    try:
        return to_datetime(micros).isoformat()
    except (OverflowError, ValueError):
        return datetime.fromtimestamp(0, UTC).isoformat()
