"""The facts that alerts judge, measured from the files of a job, and what has changed in the last minutes."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.checkpoint.journal import COMMITS, entry
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.facts.description import JobDescription
from headrace.jobs.facts.last_run import LastRun
from headrace.jobs.facts.listing import listed
from headrace.log import Log
from headrace.operators.event_time.epoch_time import BEGINNING, END

Facts = dict[str, float | None]
_LATELY, _HOUR = 300.0, 3_600.0


def measured(place: JobDirectory, log: Log, description: JobDescription, now: float) -> Facts:
    """A job at one moment: facts, and totals from which `changed` learns what is new."""
    found, run, plan, record = listed(place, log), LastRun.of(place), place.committed_plan(), place.record()
    accounting = None if record is None else JobAccounting(log, place.name, record, place.accounting)
    totals, kept = ([], []) if accounting is None else (accounting.totals(), accounting.state())
    streams = {step.name for step in description.steps if step.kind == "stream"}
    outputs = {output.name for output in description.outputs}
    progress = run.progress if run is not None and found.state == "running" else {}
    return {
        "at": now,
        "running": float(found.state == "running"),
        "failed": float(found.state in ("failed", "killed")),
        "lag_records": None if found.lag is None else float(found.lag),
        "lag_seconds": found.lag_seconds,
        "watermark_delay": _delay(plan, now),
        "watermark_held": _held(plan),
        "state_rows": float(sum(row["rows"] for row in kept)),
        "state_bytes": float(sum(row["bytes"] for row in kept)),
        "epoch_seconds": progress.get("epoch_seconds"),
        "restarts": progress.get("restarts"),
        "commit_age": _age(place, found.epoch, now),
        "in": float(sum(row["in"] for row in totals if row["step"] in streams)),
        "out": float(sum(row["in"] for row in totals if row["step"] in outputs)),
        **{name: float(sum(row[name] for row in totals)) for name in ("late", "dead_letter", "duplicate")},
    }


def changed(now: Facts, samples: Sequence[Facts]) -> Facts:
    """The facts with shares, rates and growth since earlier samples; those are of the same job, the oldest first."""
    lately, hour = _oldest(now, samples, _LATELY), _oldest(now, samples, _HOUR)
    seconds = _number(now["at"]) - _number(lately["at"])
    taken = _since(now, lately, "in")
    size = _number(hour["state_bytes"])
    return {
        **now,
        "late_share": _since(now, lately, "late") / taken if taken else 0.0,
        "dead_letters": _since(now, lately, "dead_letter"),
        "dead_letter_share": _since(now, lately, "dead_letter") / taken if taken else 0.0,
        "duplicate_share": _since(now, lately, "duplicate") / taken if taken else 0.0,
        "in_rate": taken / seconds if seconds else 0.0,
        "out_rate": _since(now, lately, "out") / seconds if seconds else 0.0,
        "lag_growth": (_number(now["lag_records"]) - _number(lately["lag_records"])) / seconds if seconds else 0.0,
        "state_growth": _number(now["state_bytes"]) / size - 1 if size else 0.0,
    }


def _oldest(now: Facts, samples: Sequence[Facts], within: float) -> Facts:
    at = _number(now["at"])
    return next((sample for sample in samples if at - _number(sample["at"]) <= within), now)


def _since(now: Facts, before: Facts, name: str) -> float:
    return max(0.0, _number(now[name]) - _number(before[name]))


def _number(value: float | None) -> float:
    return value or 0.0


def _delay(plan: EpochPlan | None, now: float) -> float | None:
    mark = BEGINNING if plan is None else plan.watermark
    return now - mark / 1_000_000 if BEGINNING < mark < END else None


def _held(plan: EpochPlan | None) -> float | None:
    streams = () if plan is None else plan.progress.values()
    reached = [reach.latest for progress in streams if not progress.asleep for reach in progress.partitions.values()]
    return (max(reached) - min(reached)) / 1_000_000 if len(reached) > 1 else None


def _age(place: JobDirectory, epoch: int, now: float) -> float | None:
    file = entry(place.checkpoint, COMMITS, epoch - 1)
    return max(0.0, now - file.stat().st_mtime) if file.is_file() else None
