"""Kinds of windows: the stretches of event time that results are computed over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from math import gcd
from typing import Any, ClassVar

import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP
from headrace.core.counts import counts
from headrace.core.durations import microseconds, spelled
from headrace.core.errors import PlanError
from headrace.plan.nodes import FactsOnly, StateSummary
from headrace.plan.windows.emit import Emit

BOUNDS = (pa.field("window_start", TIMESTAMP), pa.field("window_end", TIMESTAMP))
_NOTHING = timedelta(0)
# Windows of at most this many panes for each hop are merged from panes.
_MOST_PANES = 1_000


@dataclass(frozen=True)
class RefusedPanes:
    """Why windows cannot emit some panes, in words."""

    fact: str
    why: str
    hint: str


class Window(ABC):
    """A kind of window. Results have its `columns`; those of `identity`, with the key, identify them."""

    columns: ClassVar[tuple[pa.Field, ...]] = BOUNDS
    identity: ClassVar[tuple[str, ...]] = ("window_start",)
    aligned: ClassVar[bool] = True
    """Whether windows of all keys have the same bounds."""
    merges: ClassVar[bool] = False
    """Whether windows grow and merge."""
    positional: ClassVar[bool] = False
    """Whether windows begin or end with a record."""
    endless: ClassVar[bool] = False
    """Whether there is one window for all time."""
    by_clock: ClassVar[bool] = False
    """Whether windows go by the wall clock, not by event time."""
    corrected: ClassVar[bool] = True
    """Whether late records correct a window that has emitted its result."""
    facts_only: ClassVar[FactsOnly | None] = None
    """Why the windows take in no results that change."""

    @property
    def reach(self) -> timedelta:
        """How far from a record's time a bound of its windows may be; zero where the windows check this themselves."""
        return _NOTHING

    @property
    def trails(self) -> timedelta:
        """How long the windows of later records contain a record whose own window is closed."""
        return _NOTHING

    def refused_panes(self, emit: Emit) -> RefusedPanes | None:
        """Why windows cannot emit such panes; None where they can."""
        return None

    @abstractmethod
    def state_summary(self, kept: timedelta, emit: Emit) -> StateSummary:
        """The state of windows that may be corrected for the time `kept` and emit such panes."""


def _places_among(windows: str) -> FactsOnly:
    return FactsOnly(
        f"{windows} over",
        "the windows of others begin or end with a result, and it may be retracted",
        "take the changes as facts first: .to_stream(), or use tumbling or hopping windows",
    )


@dataclass(frozen=True)
class Hopping(Window):
    """Windows of `size`, one every `hop`, counted from 1970 UTC plus `offset`. Where `hop` is `size` they are tumbling."""

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

    @property
    def reach(self) -> timedelta:
        return self.size

    def state_summary(self, kept: timedelta, emit: Emit) -> StateSummary:
        bound = f"{spelled(self.size + kept)} behind the watermark"
        if emit.in_panes or not self.in_panes:
            return StateSummary("a row per key and window", bound)
        return StateSummary(f"a row per key and pane of {spelled(self._pane)}", bound)

    @property
    def in_panes(self) -> bool:
        """Whether windows share panes: not where sizes have so little in common that a window would have very many."""
        return self.hop // self._pane <= _MOST_PANES

    @property
    def _pane(self) -> timedelta:
        return timedelta(microseconds=gcd(microseconds(self.size), microseconds(self.hop)))

    def __str__(self) -> str:
        kind = f"tumbling {spelled(self.size)}" if self.tumbling else f"hopping {spelled(self.size)} every {spelled(self.hop)}"
        return f"{kind}, offset {spelled(self.offset)}" if self.offset else kind


@dataclass(frozen=True)
class Session(Window):
    """Stretches of activity of one key, ended by `gap` without a record; two that come closer than `gap` merge.

    A session may begin when one that is closed began: only start and end together identify it.
    """

    identity: ClassVar[tuple[str, ...]] = ("window_start", "window_end")
    aligned: ClassVar[bool] = False
    merges: ClassVar[bool] = True
    facts_only: ClassVar[FactsOnly | None] = FactsOnly(
        "session windows over",
        "a session that a result has joined or prolonged cannot be parted again when that is retracted",
        "leave out until= before it, or use tumbling windows",
    )

    gap: timedelta

    def __post_init__(self) -> None:
        if self.gap <= _NOTHING:
            raise PlanError(f"a session gap of {spelled(self.gap)} ends every session at once", hint="give a duration above zero")

    @property
    def reach(self) -> timedelta:
        return self.gap

    def state_summary(self, kept: timedelta, emit: Emit) -> StateSummary:
        return StateSummary("a row per key and session", f"{spelled(self.gap + kept)} after its last record")

    def __str__(self) -> str:
        return f"session with gap {spelled(self.gap)}"


@dataclass(frozen=True)
class Global(Window):
    """One window for all time, which ends with the input: triggers say what it emits before that."""

    aligned: ClassVar[bool] = False
    endless: ClassVar[bool] = True
    corrected: ClassVar[bool] = False

    def state_summary(self, kept: timedelta, emit: Emit) -> StateSummary:
        return StateSummary("a row per key", "none: as many as there are keys")

    def __str__(self) -> str:
        return "global"


@dataclass(frozen=True)
class Custom(Window):
    """Windows by a function from event times to their starts and ends."""

    function: Callable[[Any], tuple[Any, Any]]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise PlanError(
                f"custom({self.function!r}) is not a function", hint="give one from event times to the starts and ends of windows"
            )

    def state_summary(self, kept: timedelta, emit: Emit) -> StateSummary:
        """The function alone knows how long a window is."""
        more = f" and {spelled(kept)}" if kept else ""
        return StateSummary("a row per key and window", f"the end of its window{more} behind the watermark")

    def __str__(self) -> str:
        return f"windows of {getattr(self.function, '__qualname__', type(self.function).__name__)}"


@dataclass(frozen=True)
class Sliding(Window):
    """For each event, the events of its key in the `length` of time that ends with it, both ends inside."""

    identity: ClassVar[tuple[str, ...]] = ("window_end",)
    positional: ClassVar[bool] = True
    facts_only: ClassVar[FactsOnly | None] = _places_among("sliding windows")

    length: timedelta

    def __post_init__(self) -> None:
        if self.length <= _NOTHING:
            raise PlanError(f"a sliding window of {spelled(self.length)} holds no time", hint="give a duration above zero")

    @property
    def reach(self) -> timedelta:
        return self.length

    @property
    def trails(self) -> timedelta:
        return self.length

    def refused_panes(self, emit: Emit) -> RefusedPanes | None:
        if emit == Emit(until=emit.until):
            return None
        why = "it ends with an event, and what comes late replaces its pane"
        return RefusedPanes("a sliding window has no early pane", why, "emit(until=...) alone")

    def state_summary(self, kept: timedelta, emit: Emit) -> StateSummary:
        return StateSummary("a row per key and event time", f"{spelled(self.length + kept)} behind the watermark")

    def __str__(self) -> str:
        return f"sliding {spelled(self.length)}"


@dataclass(frozen=True)
class Count(Window):
    """Windows of a number of records of a key, in the order of event time; one begins with every `every`th record."""

    columns: ClassVar[tuple[pa.Field, ...]] = (*BOUNDS, pa.field("window_number", pa.int64()))
    identity: ClassVar[tuple[str, ...]] = ("window_number",)
    aligned: ClassVar[bool] = False
    positional: ClassVar[bool] = True
    corrected: ClassVar[bool] = False
    facts_only: ClassVar[FactsOnly | None] = _places_among("count windows")

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

    def refused_panes(self, emit: Emit) -> RefusedPanes | None:
        if not emit.again:
            return None
        return RefusedPanes("a count window emits when it is full", "the places in it are given away then", "leave out emit(...)")

    def state_summary(self, kept: timedelta, emit: Emit) -> StateSummary:
        return StateSummary("records ahead of the watermark, a count per key and open window", "none: as many as there are keys")

    def __str__(self) -> str:
        return f"{self.records} records" if self.every == self.records else f"{self.records} records every {self.every}"
