"""Row accounting: for each step, records in = out + late + duplicate + filtered + dead letters, exactly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.core.errors import JobError

COLUMNS = (
    "job string, epoch bigint, step string, `in` bigint, out bigint, late bigint, duplicate bigint, filtered bigint, dead_letter bigint"
)
ENDS = ("out", "late", "duplicate", "filtered", "dead_letter")


@dataclass
class Count:
    """What became of the records that a step took in. `out` went on; for an aggregation they are in its state."""

    taken: int = 0
    out: int = 0
    late: int = 0
    duplicate: int = 0
    filtered: int = 0
    dead_letter: int = 0

    @property
    def missing(self) -> int:
        return self.taken - self.out - self.late - self.duplicate - self.filtered - self.dead_letter


class Accounting:
    """The counts of all steps of an epoch or a run, in the order in which records meet them."""

    def __init__(self) -> None:
        self._counts: dict[str, Count] = {}

    def add(self, step: str, **ends: int) -> None:
        """Count records of a step: `taken` and what became of them."""
        count = self._counts.setdefault(step, Count())
        for end, number in ends.items():
            setattr(count, end, getattr(count, end) + number)

    def unite(self, other: Accounting) -> None:
        for step, count in other._counts.items():
            self.add(step, **asdict(count))

    def __iter__(self) -> Iterator[tuple[str, Count]]:
        return iter(self._counts.items())

    def rows(self) -> list[dict[str, int | str]]:
        """One dictionary a step: step, in, out, late, duplicate, filtered, dead_letter."""
        return [{"step": step, "in": count.taken, **{end: getattr(count, end) for end in ENDS}} for step, count in self]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Accounting:
        """What `rows` made a list of."""
        accounting = cls()
        for row in rows:
            accounting.add(row["step"], **{("taken" if end == "in" else end): number for end, number in row.items() if end != "step"})
        return accounting

    def check(self, but: Collection[str] = ()) -> None:
        """Stop if any record is unaccounted for; of the steps `but` this process does not see all."""
        for step, count in self:
            if count.missing and step not in but:
                kinds = ", ".join(f"{end} {getattr(count, end):,}" for end in ENDS if getattr(count, end))
                raise JobError(
                    f"step {step!r}: {count.taken:,} records came in, {kinds or 'nothing'} came of them, {count.missing:,} are missing",
                    why="a record was lost or counted twice",
                    hint="nothing of this epoch is committed; please report it with the output of `headrace accounting`",
                )
