"""Where in event time results are computed: the kinds of windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from math import gcd
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from headrace.core.counts import counts
from headrace.core.durations import microseconds, spelled
from headrace.core.errors import PlanError
from headrace.core.schema import TIMESTAMP
from headrace.plan.emit import Emit
from headrace.plan.nodes import Memory

BOUNDS = (pa.field("window_start", TIMESTAMP), pa.field("window_end", TIMESTAMP))
_NOTHING = timedelta(0)
# Of so many panes to a hop at most windows are united.
_MOST_PANES = 1_000


class Window(Protocol):
    """A kind of window. Results have its `columns`, and those of `identity` tell them apart, beside the key."""

    columns: ClassVar[tuple[pa.Field, ...]]
    identity: ClassVar[tuple[str, ...]]

    def memory(self, kept: timedelta, emit: Emit) -> Memory:
        """What is kept of windows that may be corrected for so long, and give out such panes."""
        ...


@dataclass(frozen=True)
class Hopping:
    """Windows of `size`, one every `hop`, counted from 1970 UTC plus `offset`. Where `hop` is `size` they are tumbling."""

    columns: ClassVar[tuple[pa.Field, ...]] = BOUNDS
    identity: ClassVar[tuple[str, ...]] = ("window_start",)

    size: timedelta
    hop: timedelta
    offset: timedelta = _NOTHING

    def __post_init__(self) -> None:
        if self.size <= _NOTHING or self.hop <= _NOTHING:
            raise PlanError(f"a window of {spelled(self.size)} every {spelled(self.hop)} holds no time", hint="give durations above zero")
        if self.hop > self.size:
            raise PlanError(
                f"windows of {spelled(self.size)} every {spelled(self.hop)} leave gaps",
                why="records between two windows would be in none",
                hint="let every= be at most the size",
            )

    @property
    def tumbling(self) -> bool:
        return self.size == self.hop

    def memory(self, kept: timedelta, emit: Emit) -> Memory:
        bound = f"{spelled(self.size + kept)} behind the watermark"
        if emit.in_panes or not self.in_panes:
            return Memory("a row a key and window", bound)
        return Memory(f"a row a key and pane of {spelled(self._pane)}", bound)

    @property
    def in_panes(self) -> bool:
        """Whether windows share panes: not where sizes have so little in common that there would be very many to a window."""
        return self.hop // self._pane <= _MOST_PANES

    @property
    def _pane(self) -> timedelta:
        return timedelta(microseconds=gcd(microseconds(self.size), microseconds(self.hop)))

    def __str__(self) -> str:
        kind = f"tumbling {spelled(self.size)}" if self.tumbling else f"hopping {spelled(self.size)} every {spelled(self.hop)}"
        return f"{kind}, offset {spelled(self.offset)}" if self.offset else kind


@dataclass(frozen=True)
class Session:
    """Stretches of activity of one key, ended by `gap` without a record; two that come closer than `gap` merge."""

    columns: ClassVar[tuple[pa.Field, ...]] = BOUNDS
    identity: ClassVar[tuple[str, ...]] = ("window_start",)

    gap: timedelta

    def __post_init__(self) -> None:
        if self.gap <= _NOTHING:
            raise PlanError(f"a session gap of {spelled(self.gap)} ends every session at once", hint="give a duration above zero")

    def memory(self, kept: timedelta, emit: Emit) -> Memory:
        return Memory("a row a key and session", f"{spelled(self.gap + kept)} after its last record")

    def __str__(self) -> str:
        return f"session with gap {spelled(self.gap)}"


@dataclass(frozen=True)
class Global:
    """One window for all time, which ends with the input: what it gives out before that, triggers say."""

    columns: ClassVar[tuple[pa.Field, ...]] = BOUNDS
    identity: ClassVar[tuple[str, ...]] = ("window_start",)

    def memory(self, kept: timedelta, emit: Emit) -> Memory:
        return Memory("a row a key", "none: as many as there are keys")

    def __str__(self) -> str:
        return "global"


@dataclass(frozen=True)
class Custom:
    """Windows by a function from event times to their starts and ends."""

    columns: ClassVar[tuple[pa.Field, ...]] = BOUNDS
    identity: ClassVar[tuple[str, ...]] = ("window_start",)

    function: Callable[[Any], tuple[Any, Any]]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise PlanError(f"custom({self.function!r}) is no function", hint="give one from event times to the starts and ends of windows")

    def memory(self, kept: timedelta, emit: Emit) -> Memory:
        """The function alone knows how long a window is."""
        more = f" and {spelled(kept)}" if kept else ""
        return Memory("a row a key and window", f"the end of its window{more} behind the watermark")

    def __str__(self) -> str:
        return f"windows of {getattr(self.function, '__qualname__', type(self.function).__name__)}"


@dataclass(frozen=True)
class Sliding:
    """For each event, the events of its key in the `length` of time that ends with it, both ends inside."""

    columns: ClassVar[tuple[pa.Field, ...]] = BOUNDS
    identity: ClassVar[tuple[str, ...]] = ("window_end",)

    length: timedelta

    def __post_init__(self) -> None:
        if self.length <= _NOTHING:
            raise PlanError(f"a sliding window of {spelled(self.length)} holds no time", hint="give a duration above zero")

    def memory(self, kept: timedelta, emit: Emit) -> Memory:
        return Memory("a row a key and event time", f"{spelled(self.length + kept)} behind the watermark")

    def __str__(self) -> str:
        return f"sliding {spelled(self.length)}"


@dataclass(frozen=True)
class Count:
    """So many records of a key each, in the order of event time; one window begins with every `every`th record."""

    columns: ClassVar[tuple[pa.Field, ...]] = (*BOUNDS, pa.field("window_number", pa.int64()))
    identity: ClassVar[tuple[str, ...]] = ("window_number",)

    records: int
    every: int

    def __post_init__(self) -> None:
        if not (counts(self.records) and counts(self.every)):
            raise PlanError(
                f"a window of {self.records!r} records every {self.every!r} holds nothing", hint="give whole numbers above zero"
            )
        if self.every > self.records:
            raise PlanError(
                f"windows of {self.records} records every {self.every} leave gaps",
                why="records between two windows would be in none",
                hint="let every= be at most the number of records",
            )

    def memory(self, kept: timedelta, emit: Emit) -> Memory:
        return Memory("records ahead of the watermark, a count a key and its open window", "none: as many as there are keys")

    def __str__(self) -> str:
        return f"{self.records} records" if self.every == self.records else f"{self.records} records every {self.every}"
