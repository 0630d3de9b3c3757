"""The arguments of the user's functions: an event, the state of its key, and its timers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from headrace.core.clock import to_datetime, to_microseconds
from headrace.core.durations import Duration, microseconds


def event_type(name: str, columns: Sequence[str]) -> Any:
    """A record with its columns as attributes; `event["a column"]` works for names that are not Python names."""
    places = {column: place for place, column in enumerate(columns)}

    class Event(namedtuple(name, columns, rename=True)):  # type: ignore[misc] # its columns are known now only
        __slots__ = ()

        def __getitem__(self, place: Any) -> Any:
            return tuple.__getitem__(self, places[place] if isinstance(place, str) else place)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(columns, self, strict=True))

    Event.__name__ = Event.__qualname__ = name
    return Event


class State:
    """The state of a key: an attribute for each column, null before it is first written. `clear()` resets all."""

    __slots__: tuple[str, ...] = ()

    def __init__(self, values: Sequence[Any]) -> None:
        become(self, values)

    def clear(self) -> None:
        for name in self.__slots__:
            setattr(self, name, None)


# No methods: any name may be that of a column.
def become(state: State, values: Sequence[Any]) -> None:
    """Let a state have these values."""
    for name, value in zip(state.__slots__, values, strict=True):
        setattr(state, name, value)


def values_of(state: State) -> list[Any]:
    """The present values of a state, in the order of its columns."""
    return [getattr(state, name) for name in state.__slots__]


def state_type(columns: Sequence[str]) -> type[State]:
    """A state of these columns; writing any other is an error."""
    return type("State", (State,), {"__slots__": tuple(columns)})


class Timers:
    """The timers of a key, each with a name: setting one again moves it."""

    def __init__(self, waiting: dict[str, int], *, usable: bool) -> None:
        self.waiting = waiting
        self.moment: int | None = None
        self._usable = usable

    @property
    def now(self) -> datetime | None:
        """The time of the event, or of the timer."""
        return None if self.moment is None else to_datetime(self.moment)

    def at(self, moment: datetime, name: str = "") -> None:
        """Call `on_timer` when event time reaches a moment."""
        self._set(to_microseconds(moment), name)

    def after(self, time: Duration, name: str = "") -> None:
        """Call `on_timer` this long after the event, or the timer."""
        self._set((self.moment or 0) + _length(time), name)

    def cancel(self, name: str = "") -> None:
        """Cancel a timer."""
        self.waiting.pop(name, None)

    def _set(self, moment: int, name: str) -> None:
        if not self._usable:
            raise ValueError("a timer is set, and process() was given no on_timer")
        if self.moment is None or moment <= self.moment:
            raise ValueError(f"a timer at {to_datetime(moment)} is not after {self.now}")
        self.waiting[str(name)] = moment


class Timer(NamedTuple):
    """A timer that fires: its key, its name, and its time."""

    key: Any
    name: str
    moment: int

    @property
    def at(self) -> datetime:
        return to_datetime(self.moment)


@lru_cache(maxsize=256)
def _length(time: Duration) -> int:
    return microseconds(time)
