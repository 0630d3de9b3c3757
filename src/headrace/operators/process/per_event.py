"""One call of the user's function for each event and each timer of a key, in the order of event time.

A call that raises leaves no trace in the state: its event, or timer, is a dead letter with the reason.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.operators.changes import TIME
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.expressions import REASON
from headrace.operators.expressions.dtypes import MOMENT
from headrace.operators.process.conforming import DeclaredColumn, columns_of
from headrace.operators.process.handles import State, Timer, Timers, become, event_type, state_type, values_of
from headrace.operators.process.work import DUE, TIMERS, TOUCHED, UNTIL, Declared, Done, Work
from headrace.operators.user_errors import raised

Values = list[Any]
_TIMERS = DeclaredColumn(pa.field(TIMERS, pa.list_(pa.struct([("name", pa.string()), ("at", pa.int64())]))), "timers")


@dataclass
class _Key:
    """A key at work."""

    number: int
    state: State
    timers: Timers
    touched: int | None


@dataclass
class _Made:
    """The results of an epoch's calls: rows, states to keep, keys to remove, and failures."""

    work: Work
    events: list[Any]
    times: list[int | None]
    rows: list[Values] = field(default_factory=list)
    made_at: list[int | None] = field(default_factory=list)
    kept: list[tuple[int, int | None, dict[str, int], Values]] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    failed: list[tuple[int, str, int, str]] = field(default_factory=list)


class PerEvent:
    """Calls `on_event` and `on_timer`."""

    def __init__(self, declared: Declared) -> None:
        self._logic, self._by, self._ttl, self._in_order = declared.logic, list(declared.by), declared.ttl, declared.in_order
        self._on_event = _called(self._logic.on_event)
        # Without on_timer no timer can be set, so nothing is ever called for one.
        self._on_timer = _called(self._logic.on_timer or self._logic.on_event)
        self._event, self._key = event_type("Event", declared.columns.names), event_type("Key", self._by)
        self._state = state_type(declared.state.names)
        self._columns = declared.columns.names
        self._kept, self._returns = columns_of(declared.state, "state"), columns_of(declared.returns, "column")
        self._names = frozenset(declared.returns.names)
        # A function may change values in place: the copy to compare with or restore must not change with them.
        self._saved: Callable[[Values], Values] = copy.deepcopy if any(column.mutable for column in self._kept) else _themselves

    def run(self, work: Work) -> Done:
        made = _Made(work, [], [])
        if work.events is not None:
            made.events = [self._event._make(row) for row in work.events.select_seq(self._columns).rows()]
            made.times = work.events.get_column(TIME).to_list()
        kept = work.states.select_seq(TOUCHED, TIMERS, *(column.name for column in self._kept)).rows()
        begin = 0
        for number, ((touched, timers, *values), count) in enumerate(zip(kept, work.counts, strict=True)):
            waiting = {timer["name"]: timer["at"] for timer in timers or ()}
            key = _Key(number, self._state(values), Timers(waiting, usable=self._logic.on_timer is not None), touched)
            before = (touched, dict(waiting), self._saved(values))
            for place in range(begin, begin + count):
                self._one(key, place, made)
            self._fire(key, work.moment, made, ended=work.ended)
            self._end(key, before, made)
            begin += count
        return self._done(made)

    def _one(self, key: _Key, place: int, made: _Made) -> None:
        time = made.times[place]
        if time is not None:
            if self._in_order:
                self._fire(key, time, made)
            if self._ttl is not None and not key.timers.waiting and key.touched is not None and time - key.touched >= self._ttl:
                key.state.clear()
        reason = self._call(key, self._on_event, made.events[place], time, made)
        if reason is not None:
            made.bad.append((place, reason))

    def _fire(self, key: _Key, limit: int, made: _Made, *, ended: bool = False) -> None:
        """Call for the timers up to a moment. When the input has ended, only for those that already wait: they might set new ones
        forever."""
        if not key.timers.waiting or min(key.timers.waiting.values()) > limit:
            return
        waiting = dict(key.timers.waiting) if ended else None
        while due := [
            (at, name) for name, at in key.timers.waiting.items() if at <= limit and (waiting is None or waiting.get(name) == at)
        ]:
            at, name = min(due)
            del key.timers.waiting[name]
            if waiting is not None:
                waiting.pop(name)
            timer = Timer(self._key._make(made.work.keys.row(key.number)), name, at)
            reason = self._call(key, self._on_timer, timer, at, made)
            if reason is not None:
                made.failed.append((key.number, name, at, reason))

    def _call(self, key: _Key, function: Callable[..., Any], what: Any, time: int | None, made: _Made) -> str | None:
        """Call a function; returns the reason if it fails, and then nothing has changed."""
        values, timers = self._saved(values_of(key.state)), dict(key.timers.waiting)
        key.timers.moment = time
        try:
            rows = [self._row(row) for row in _listed(function(what, key.state, key.timers))]
            for column, before in zip(self._kept, values, strict=True):
                value = getattr(key.state, column.name)
                if value is not before:
                    setattr(key.state, column.name, column.conforming(value))
        except Exception as error:  # noqa: BLE001 - whatever a function of the user's raises is about this event
            become(key.state, values)
            key.timers.waiting.clear()
            key.timers.waiting.update(timers)
            return raised(error, self._logic.on_event if function is self._on_event else self._logic.on_timer)
        made.rows += rows
        made.made_at += [time] * len(rows)
        if time is not None and (key.touched is None or time > key.touched):
            key.touched = time
        return None

    def _row(self, row: Any) -> Values:
        """A row that a function returned, as the values of the declared columns."""
        if isinstance(row, self._event):
            row = row._asdict()
        if not isinstance(row, dict):
            raise TypeError(f"a row is a dictionary or the event, not {row!r}")
        unknown = row.keys() - self._names
        if unknown:
            raise ValueError(f"returns= has no column {min(unknown)!r}")
        return [column.conforming(row.get(column.name)) for column in self._returns]

    def _end(self, key: _Key, before: tuple[int | None, dict[str, int], Values], made: _Made) -> None:
        values, timers = values_of(key.state), key.timers.waiting
        touched, were_waiting, were = before
        empty, was_empty = not timers and all(value is None for value in values), not were_waiting and all(one is None for one in were)
        if empty:
            if not was_empty:
                made.gone.append(key.number)
        elif values != were or timers != were_waiting or (self._ttl is not None and key.touched != touched):
            made.kept.append((key.number, key.touched, timers, values))

    def _done(self, made: _Made) -> Done:
        work = made.work
        results = pl.DataFrame([column.series([row[place] for row in made.rows]) for place, column in enumerate(self._returns)])
        numbers, touched, timers, values = zip(*made.kept, strict=True) if made.kept else ((), (), (), ())
        waiting = [[{"name": name, "at": at} for name, at in sorted(one.items())] or None for one in timers]
        states = work.keys[list(numbers)].with_columns_seq(
            pl.Series(TOUCHED, touched, pl.Int64), _TIMERS.series(waiting),
            *(column.series([one[place] for one in values]) for place, column in enumerate(self._kept)),
        )  # fmt: skip
        gone = work.states[made.gone].select_seq(*self._by, TOUCHED, UNTIL, DUE, TIMERS, *(column.name for column in self._kept))
        return Done(results.with_columns_seq(pl.Series(TIME, made.made_at, pl.Int64)), states, gone, self._bad(made), _failed(made))

    def _bad(self, made: _Made) -> pl.DataFrame | None:
        events = made.work.events
        if not made.bad or events is None:
            return None
        places, reasons = zip(*made.bad, strict=True)
        return events[list(places)].select_seq(*self._columns, PARTITION, OFFSET).with_columns_seq(pl.Series(REASON, reasons, pl.String))


def _failed(made: _Made) -> pl.DataFrame | None:
    if not made.failed:
        return None
    numbers, names, times, reasons = zip(*made.failed, strict=True)
    moments = pl.Series("timer_at", times, pl.Int64).cast(MOMENT)
    return made.work.keys[list(numbers)].with_columns_seq(pl.Series("timer", names), moments, pl.Series(REASON, reasons, pl.String))


def _themselves(values: Values) -> Values:
    return values


def _listed(rows: Any) -> Iterable[Any]:
    if rows is None:
        return ()
    return (rows,) if isinstance(rows, dict | tuple) else rows


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as it is called: with the event or timer, the state and the timers; one with fewer parameters gets the first of these."""
    try:
        wanted = len(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return function
    if wanted >= 3:
        return function
    return (lambda what, state, _: function(what, state)) if wanted == 2 else (lambda what, *_: function(what))
