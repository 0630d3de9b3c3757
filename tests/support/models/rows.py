"""Rows of models, and the changes that an epoch brings to a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

SECOND = 1_000_000
# Before the first watermark, and after the last.
NEVER, FOREVER = -(10**30), 10**30

Relation = Counter["Row"]


@dataclass(frozen=True)
class Row:
    """A record or result: its event time in microseconds, and its columns."""

    time: int
    cells: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, time: int, **cells: Any) -> Row:
        return cls(time, tuple(sorted(cells.items())))

    def __getitem__(self, name: str) -> Any:
        return dict(self.cells)[name]

    def key(self, names: Sequence[str]) -> tuple[Any, ...]:
        return tuple(self[name] for name in names)

    def cut(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: self[name] for name in names}


@dataclass(frozen=True)
class Epoch:
    """What came to a step: rows that hold now, in the order in which they came, and rows that hold no longer. The watermark moved
    from `before` to `after`; `FOREVER` is the end of the input. `idle`: it moved because the stream was silent."""

    added: Sequence[Row]
    removed: Sequence[Row]
    before: int
    after: int
    idle: bool = False

    @property
    def moment(self) -> int:
        """How far time has come. The end of the input is no silence."""
        return self.after if self.after < FOREVER else self.before

    @property
    def on_time(self) -> str:
        """What a pane is called that is emitted when the watermark passes the end of its window."""
        return "idle" if self.idle else "on-time"

    def passes(self, period: int | None) -> bool:
        """Whether the watermark passed a multiple of a period."""
        if period is None:
            return False
        return self.before <= NEVER < self.after or self.after // period > self.before // period


class Step(Protocol):
    """The model of a step. `late` counts what came too late for it."""

    late: int

    def epoch(self, epoch: Epoch) -> Relation:
        """Take in an epoch; gives all rows that hold then, facts of all epochs among them."""
        ...


class Ambiguous(Exception):
    """Rows of one key and time differ: the documents say that their order is always the same, not which it is."""


def difference(now: Relation, before: Relation) -> tuple[list[Row], list[Row]]:
    """The rows that came, by time, and those that went."""
    return sorted((now - before).elements(), key=lambda row: row.time), list((before - now).elements())


def aggregated(rows: Iterable[Row]) -> dict[str, Any]:
    """`count(*) as c, sum(v) as v, max(v) as m, count(distinct v) as d, last(v, true) as l`: the last value by event time."""
    contents = list(rows)
    values = [row["v"] for row in contents if row["v"] is not None]
    _, last = max(((row.time, row["v"]) for row in contents if row["v"] is not None), default=(None, None))
    total, most = sum(values) if values else None, max(values, default=None)
    return {"c": len(contents), "v": total, "m": most, "d": len(set(values)), "l": last}


def in_order(rows: Iterable[Row], by: Sequence[str]) -> list[Row]:
    """Rows by time. Where two of one key and time differ, the documents say that contents decide, not how."""
    ordered = sorted(rows, key=lambda row: row.time)
    refuse_ties(ordered, by)
    return ordered


def refuse_ties(rows: Iterable[Row], by: Sequence[str]) -> None:
    """Raise where two rows of one key and time differ."""
    seen: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if seen.setdefault((*row.key(by), row.time), row) != row:
            raise Ambiguous
