"""What an operator is: how records enter it, what it keeps, what it gives out, and which step of a plan it computes.

Each kind of operator is one file that registers its steps with `operator_of`; nothing else needs to know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import NamedTuple, Protocol, runtime_checkable

import polars as pl

from headrace.operators.store import Store
from headrace.operators.time import EpochTime
from headrace.plan.expressions import Typed
from headrace.plan.nodes import Node

# The window of a record: that which a late one missed, or that which a result is of.
START, STOP = "_start", "_end"


@dataclass(frozen=True)
class Entered:
    """What a batch is before the shuffle: rows for the state, which stand for `accepted` records.

    `late` ones have the window they missed (`_start`, `_end`). `suspects` may be late, which only the state can tell: they travel
    with what they were when they came. `bad` ones have their `_reason`.
    """

    rows: pl.DataFrame
    accepted: int
    late: pl.DataFrame | None = None
    bad: pl.DataFrame | None = None
    suspects: pl.DataFrame | None = None


@dataclass(frozen=True)
class Arrived:
    """What came to one shard of an operator in an epoch. `table` gives all rows of the table that it stands beside, as they are now."""

    rows: Sequence[pl.DataFrame] = ()
    suspects: Sequence[pl.DataFrame] = ()
    table: Callable[[], pl.DataFrame | None] | None = None


@dataclass(frozen=True)
class Outcome:
    """The changelog that a shard gives out, the suspects that are late with their window, and what it counted itself.

    `counts` are for the accounting: `taken` and what became of records that were not `accepted` when they entered, or what else became
    of some that were.
    `bad` are records that the state could not take in after all, `failed` what went wrong without one; both with their `_reason`.
    """

    results: Sequence[pl.DataFrame] = ()
    late: pl.DataFrame | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    bad: pl.DataFrame | None = None
    failed: pl.DataFrame | None = None


class Size(NamedTuple):
    """How large a state is: its rows, and the bytes of what is stored."""

    rows: int = 0
    bytes: int = 0

    def plus(self, other: Size) -> Size:
        return Size(self.rows + other.rows, self.bytes + other.bytes)


class Stateful(Protocol):
    """The state of one shard of an operator, and what it does in an epoch."""

    @property
    def size(self) -> Size:
        """Known without looking at the state."""
        ...

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Take in what came in an epoch, let time move on, and put what changed into the store."""
        ...

    def manifest(self) -> str:
        """What is needed to find this state again."""
        ...

    def restore(self, manifest: str | None, store: Store) -> None:
        """Become the state that a manifest describes; none: no state."""
        ...


@runtime_checkable
class Tabular(Protocol):
    """A state whose results are a table that it can give out whole, as often as it is asked."""

    def table(self) -> pl.DataFrame | None:
        """All rows that hold, with their time and as additions."""
        ...


class Spec(Protocol):
    """An operator as declared: frozen, and shipped to the tasks."""

    @property
    def by(self) -> tuple[str, ...]:
        """The columns whose records must meet on one shard; at least one."""
        ...

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Judge records for lateness and make of them what crosses the shuffle, as little as possible."""
        ...

    def closing(self, moment: int) -> int:
        """The end of the last window that a moment is in; the moment itself where there are no windows."""
        ...

    def fresh(self) -> Stateful:
        """The operator of one shard, with no state yet."""
        ...


@dataclass(frozen=True)
class Made:
    """The operator of a step, and what it takes of each record: arguments computed at its entry, or the whole record."""

    spec: Spec
    arguments: tuple[tuple[str, Typed], ...] | None = None


@singledispatch
def operator_of(node: Node) -> Made:
    """The operator that computes a stateful step."""
    raise TypeError(f"{type(node).__name__} has no operator")
