"""The contract of an operator: its ports, its state, what it emits, and which step of a plan it computes.

Each kind of operator is one file that registers its steps with `operator_of`; no other code needs to know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, NamedTuple, Protocol, runtime_checkable

import polars as pl

from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.store import Store
from headrace.plan.expressions import Typed
from headrace.plan.nodes import Node

# The window of a record: the one that a late record missed, or that of a result.
START, STOP = "_start", "_end"


@dataclass(frozen=True)
class Entered:
    """A batch before the shuffle: rows for the state, which stand for `accepted` records.

    `late` records have the window they missed (`_start`, `_end`), and maybe a `_reason`. `suspects` may be late, which only the state can
    tell: they travel with their originals. `bad` ones have their `_reason`. `partly_late` of the accepted ones missed some windows.
    """

    rows: pl.DataFrame
    accepted: int
    late: pl.DataFrame | None = None
    bad: pl.DataFrame | None = None
    suspects: pl.DataFrame | None = None
    partly_late: int = 0


# The port of an operator that has only one.
ONLY = ""


@dataclass(frozen=True)
class Arrived:
    """The input of one shard of an operator in an epoch. `table` returns all present rows of the table that it is co-located with.

    `rows` came to the only port of the operator, `ports` to named ones.
    """

    rows: Sequence[pl.DataFrame] = ()
    suspects: Sequence[pl.DataFrame] = ()
    table: Callable[[], pl.DataFrame | None] | None = None
    ports: Mapping[str, Sequence[pl.DataFrame]] = field(default_factory=dict)

    def at(self, port: str) -> Sequence[pl.DataFrame]:
        """The frames that came to a port."""
        return self.ports.get(port, ())


@dataclass(frozen=True)
class Outcome:
    """The changelog that a shard emits, the late suspects with their window, and its own counts.

    `counts` are for the accounting: `taken` and the fates of records that were not `accepted` when they entered, or further fates of some
    that were. `bad` are records that the state could not process after all, `failed` are failures without a record; both with their
    `_reason`. `scored` is the model that was asked, and for how many microseconds.
    """

    results: Sequence[pl.DataFrame] = ()
    late: pl.DataFrame | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    bad: pl.DataFrame | None = None
    failed: pl.DataFrame | None = None
    scored: tuple[str, int] | None = None


def without_result(records: int) -> dict[str, int]:
    """The counts of records that were accepted and are in no result."""
    return {"out": -records, "filtered": records} if records else {}


class Size(NamedTuple):
    """The size of a state: its rows, and its stored bytes."""

    rows: int = 0
    bytes: int = 0

    def plus(self, other: Size) -> Size:
        return Size(self.rows + other.rows, self.bytes + other.bytes)


@dataclass(frozen=True)
class Exported:
    """The state of some key groups of an operator, on its way to other shards: frames by name, each row to the shard of its key group.

    The key of a row is in the columns by which the first port is co-located, or in those that `by` names for its frame. What is the same on
    every shard is `common`, as JSON, or `everywhere`, as frames.
    """

    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    common: Mapping[str, Any] = field(default_factory=dict)
    by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    everywhere: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def plus(self, other: Exported) -> Exported:
        """Both; their frames have different names."""
        return Exported(
            {**self.frames, **other.frames},
            {**self.common, **other.common},
            {**self.by, **other.by},
            {**self.everywhere, **other.everywhere},
        )


class Stateful(Protocol):
    """The state of one shard of an operator, and what it does in an epoch."""

    @property
    def size(self) -> Size:
        """Known without reading the state."""
        ...

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Process the input of an epoch, advance time, and put the changes into the store."""
        ...

    def manifest(self) -> str:
        """The description from which this state can be restored."""
        ...

    def restore(self, manifest: str | None, store: Store) -> None:
        """Become the state that a manifest describes; none: no state."""
        ...

    def export(self) -> Exported:
        """The whole state, without what can be computed from it."""
        ...

    def absorb(self, moved: Exported, store: Store) -> None:
        """Take over the state of key groups, and put it into the store; there is no state yet."""
        ...


@runtime_checkable
class Tabular(Protocol):
    """A state whose results are a table that it can return as a whole at any time."""

    def table(self) -> pl.DataFrame | None:
        """All live rows, with their time and as additions."""
        ...


@runtime_checkable
class Recalling(Protocol):
    """A state that depends on more than its input: what others answered. An attempt that repeats an epoch must be answered the same."""

    def recall(self, manifest: str, store: Store) -> None:
        """Learn the answers from the state that an earlier attempt of the next epoch has stored."""
        ...


class Entrance(Protocol):
    """The way of records into one port of an operator: frozen, and sent to the tasks."""

    @property
    def by(self) -> tuple[str, ...]:
        """The columns whose records must be co-located; at least one."""
        ...

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Judge records for lateness and reduce them to what crosses the shuffle."""
        ...


class OperatorSpec(Protocol):
    """An operator as declared: frozen, and sent to the tasks."""

    def closing(self, moment: int) -> int:
        """The end of the last window that a moment is in; the moment itself where there are no windows."""
        ...

    def fresh(self) -> Stateful:
        """The operator of one shard, with no state yet."""
        ...


@runtime_checkable
class Upserting(OperatorSpec, Protocol):
    """An operator whose rows replace each other by key, so that a replaced row need not be retracted for those who know."""

    def with_upserts(self) -> OperatorSpec:
        """The same operator; it retracts only rows that no other replaces."""
        ...


@runtime_checkable
class ByWallClock(OperatorSpec, Protocol):
    """An operator whose windows end by the clock of epochs."""

    def last_end(self, clock: int) -> int:
        """The end of the last window that contains a record taken in at this moment."""
        ...

    def next_end(self, clock: int) -> int:
        """The first end of a window after this moment."""
        ...


class Spec(Entrance, OperatorSpec, Protocol):
    """An operator with one input, which is its own entrance."""


@dataclass(frozen=True)
class Port:
    """One input of an operator, and the columns it takes: arguments computed at its entry, or the whole record."""

    entrance: Entrance
    arguments: tuple[tuple[str, Typed], ...] | None = None
    reach: int = 0
    """How far from a record's time its windows may reach, in microseconds."""
    broadcast: bool = False
    """Whether every shard gets every row."""
    compared: tuple[str, ...] = ()
    """Columns that keys are compared with, other than those that records are co-located by."""


@dataclass(frozen=True)
class Made:
    """The operator of a step, and its ports by the names of the step's inputs."""

    spec: OperatorSpec
    ports: Mapping[str, Port]


def single(spec: Spec, arguments: tuple[tuple[str, Typed], ...] | None = None, reach: int = 0) -> Made:
    """The operator of a step with one input."""
    return Made(spec, {ONLY: Port(spec, arguments, reach)})


@singledispatch
def operator_of(node: Node) -> Made:
    """The operator that computes a stateful step."""
    raise TypeError(f"{type(node).__name__} has no operator")
