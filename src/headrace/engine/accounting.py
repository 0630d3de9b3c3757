"""Row accounting: for each step, records in = out + late + duplicate + filtered + dead letters, exactly.

Records that missed some of their windows and not all are in `out`, and also counted as `partly_late`, which is not part of the sum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.core.errors import JobError

COLUMNS = (
    "job string, epoch bigint, step string, `in` bigint, out bigint, late bigint, duplicate bigint, filtered bigint, dead_letter bigint, "
    "partly_late bigint, late_reason string, dead_letter_reason string, state_rows bigint, state_bytes bigint, "
    "writes bigint, write_micros bigint, model string, scorings bigint, scoring_micros bigint"
)
ENDS = ("out", "late", "duplicate", "filtered", "dead_letter")
UNSUMMED = ("partly_late",)
"""Counts that are not part of the sum: some of what went `out`."""
REASONS = ("late_reason", "dead_letter_reason")
"""Why the first record of a step was late, or a dead letter."""
_NUMBERS = ("taken", *ENDS, *UNSUMMED)
KEPT = ("state_rows", "state_bytes")
WRITTEN = ("writes", "write_micros")
"""How often tasks wrote to an output, and for how many microseconds in all."""
SCORED = ("model", "scorings", "scoring_micros")
"""The model of a step with its version, how often tasks asked it, and for how many microseconds in all."""


@dataclass
class StepCount:
    """The fate of the records that a step took in. `out` went on, or into the state of the step."""

    taken: int = 0
    out: int = 0
    late: int = 0
    duplicate: int = 0
    filtered: int = 0
    dead_letter: int = 0
    partly_late: int = 0
    late_reason: str | None = None
    dead_letter_reason: str | None = None

    def merge(self, other: StepCount) -> None:
        """Add the counts of another part of the step; the first reason stays."""
        for name in _NUMBERS:
            if number := getattr(other, name):
                setattr(self, name, getattr(self, name) + number)
        self.late_reason = self.late_reason or other.late_reason
        self.dead_letter_reason = self.dead_letter_reason or other.dead_letter_reason

    @property
    def missing(self) -> int:
        return self.taken - self.out - self.late - self.duplicate - self.filtered - self.dead_letter


class Accounting:
    """The counts of all steps of an epoch or a run, in the order in which records meet them."""

    def __init__(self) -> None:
        self._counts: dict[str, StepCount] = {}
        self._kept: dict[str, tuple[int, int]] = {}
        self._written: dict[str, tuple[int, int]] = {}
        self._scored: dict[str, tuple[str, int, int]] = {}

    def add(self, step: str, **ends: int) -> None:
        """Count records of a step: `taken`, and their fates."""
        count = self._counts.setdefault(step, StepCount())
        for end, number in ends.items():
            setattr(count, end, getattr(count, end) + number)

    def explain(self, step: str, **reasons: str | None) -> None:
        """Record why records of a step were late or dead letters; the first reason stays."""
        count = self._counts.setdefault(step, StepCount())
        for name, reason in reasons.items():
            setattr(count, name, getattr(count, name) or reason)

    def keep(self, step: str, rows: int, size: int) -> None:
        """Record the size of a shard's state of a step at the end of an epoch, in rows and bytes."""
        before = self._kept.get(step, (0, 0))
        self._kept[step] = (before[0] + rows, before[1] + size)

    def wrote(self, output: str, micros: int, writes: int = 1) -> None:
        """Record that a task wrote to an output, and for how many microseconds."""
        before = self._written.get(output, (0, 0))
        self._written[output] = (before[0] + writes, before[1] + micros)

    def scored(self, step: str, model: str, micros: int, scorings: int = 1) -> None:
        """Record that a task asked the model of a step, and for how many microseconds; the last model stays."""
        before = self._scored.get(step, ("", 0, 0))
        self._scored[step] = (model, before[1] + scorings, before[2] + micros)

    def merge(self, other: Accounting) -> None:
        for step, count in other._counts.items():
            self._counts.setdefault(step, StepCount()).merge(count)
        for step, kept in other._kept.items():
            self.keep(step, *kept)
        for output, (writes, micros) in other._written.items():
            self.wrote(output, micros, writes)
        for step, (model, scorings, micros) in other._scored.items():
            self.scored(step, model, micros, scorings)

    def __iter__(self) -> Iterator[tuple[str, StepCount]]:
        return iter(self._counts.items())

    def rows(self) -> list[dict[str, int | str]]:
        """One dictionary for each step: step, in, out, late, duplicate, filtered, dead_letter, and partly_late, which is not part of the
        sum."""
        return [_row(step, count) for step, count in self]

    def reasons(self) -> dict[str, dict[str, str | None]]:
        """For each step, the reason of its first late record, and of its first dead letter."""
        return {step: _reasons(count) for step, count in self}

    def entries(self) -> list[dict[str, int | str | None]]:
        """The content of `rows` and `reasons`, the state sizes of steps, and the times of writes and models, also where no record moved."""
        quiet = sorted((self._kept.keys() | self._written.keys() | self._scored.keys()) - self._counts.keys())
        counts = [*self, *((step, StepCount()) for step in quiet)]
        return [{**_row(step, count), **_reasons(count), **self._measured(step)} for step, count in counts]

    def _measured(self, step: str) -> dict[str, int | str | None]:
        none = (None, None)
        found = (*self._kept.get(step, none), *self._written.get(step, none), *self._scored.get(step, (None, *none)))
        return dict(zip((*KEPT, *WRITTEN, *SCORED), found, strict=True))

    @classmethod
    def of(cls, entries: Iterable[Mapping[str, Any]]) -> Accounting:
        """The accounting that `entries` listed."""
        accounting = cls()
        for entry in entries:
            accounting.add(entry["step"], taken=entry["in"], **{name: entry[name] for name in (*ENDS, *UNSUMMED)})
            accounting.explain(entry["step"], **{name: entry[name] for name in REASONS})
            if entry[KEPT[0]] is not None:
                accounting.keep(entry["step"], *(entry[name] for name in KEPT))
            if entry[WRITTEN[0]] is not None:
                accounting.wrote(entry["step"], entry["write_micros"], entry["writes"])
            if entry[SCORED[0]] is not None:
                accounting.scored(entry["step"], entry["model"], entry["scoring_micros"], entry["scorings"])
        return accounting

    def check(self, but: Collection[str] = ()) -> None:
        """Raise if any record is unaccounted for; this process does not see all records of the steps in `but`."""
        for step, count in self:
            if count.missing and step not in but:
                kinds = ", ".join(f"{end} {getattr(count, end):,}" for end in ENDS if getattr(count, end))
                raise JobError(
                    f"step {step!r}: {count.taken:,} records came in, {kinds or 'nothing'} came of them, {count.missing:,} are missing",
                    why="a record was lost or counted twice",
                    hint="nothing of this epoch is committed; please report it with the output of `headrace accounting`",
                )


def _row(step: str, count: StepCount) -> dict[str, int | str]:
    return {"step": step, "in": count.taken, **{name: getattr(count, name) for name in (*ENDS, *UNSUMMED)}}


def _reasons(count: StepCount) -> dict[str, str | None]:
    return {name: getattr(count, name) for name in REASONS}
