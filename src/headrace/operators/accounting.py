"""Row accounting: for each step, records in = out + late + duplicate + filtered + dead letters, exactly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.core.errors import JobError

COLUMNS = (
    "job string, epoch bigint, step string, `in` bigint, out bigint, late bigint, duplicate bigint, filtered bigint, dead_letter bigint, "
    "state_rows bigint, state_bytes bigint"
)
ENDS = ("out", "late", "duplicate", "filtered", "dead_letter")
KEPT = ("state_rows", "state_bytes")


@dataclass
class Count:
    """What became of the records that a step took in. `out` went on, or into the state of the step."""

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
        self._kept: dict[str, tuple[int, int]] = {}

    def add(self, step: str, **ends: int) -> None:
        """Count records of a step: `taken` and what became of them."""
        count = self._counts.setdefault(step, Count())
        for end, number in ends.items():
            setattr(count, end, getattr(count, end) + number)

    def keep(self, step: str, rows: int, size: int) -> None:
        """Note what a shard of a step remembers at the end of an epoch: so many rows, and bytes."""
        before = self._kept.get(step, (0, 0))
        self._kept[step] = (before[0] + rows, before[1] + size)

    def unite(self, other: Accounting) -> None:
        for step, count in other._counts.items():
            self.add(step, **asdict(count))
        for step, kept in other._kept.items():
            self.keep(step, *kept)

    def __iter__(self) -> Iterator[tuple[str, Count]]:
        return iter(self._counts.items())

    def rows(self) -> list[dict[str, int | str]]:
        """One dictionary a step: step, in, out, late, duplicate, filtered, dead_letter."""
        return [{"step": step, "in": count.taken, **{end: getattr(count, end) for end in ENDS}} for step, count in self]

    def entries(self) -> list[dict[str, int | str | None]]:
        """What `rows` tells, and what each step with state remembers, also where no record moved."""
        nothing = Accounting()
        for step in self._kept.keys() - self._counts.keys():
            nothing.add(step)
        found = [*self.rows(), *nothing.rows()]
        return [{**row, **dict(zip(KEPT, self._kept.get(str(row["step"]), (None, None)), strict=True))} for row in found]

    @classmethod
    def of(cls, entries: Iterable[Mapping[str, Any]]) -> Accounting:
        """What `entries` made a list of."""
        accounting = cls()
        for entry in entries:
            accounting.add(entry["step"], taken=entry["in"], **{end: entry[end] for end in ENDS})
            if entry[KEPT[0]] is not None:
                accounting.keep(entry["step"], *(entry[name] for name in KEPT))
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
