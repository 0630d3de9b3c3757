"""One call of the user's function for all events and due timers of an epoch: frames in, frames out."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from headrace.core.errors import JobError
from headrace.operators.changes import TIME
from headrace.operators.expressions.dtypes import MOMENT, dtype
from headrace.operators.key_join import key_join
from headrace.operators.process.work import KEPT, TIMER_KIND, TIMERS, TOUCHED, Declared, Done, Work
from headrace.operators.user_errors import raised
from headrace.plan.process import FIRED, TIMER

_FIRST = "_first"


class Vectorized:
    """Calls a function with a frame of events and a frame of states; it returns a frame of results and one of states."""

    def __init__(self, declared: Declared) -> None:
        self._function, self._step, self._by, self._ttl = declared.logic.on_event, declared.step, list(declared.by), declared.ttl
        self._events, self._returns = _kinds(declared.columns) | {TIME: MOMENT}, _kinds(declared.returns) | {TIME: MOMENT}
        self._state = _kinds(declared.state)
        self._given_back = {**{name: self._events[name] for name in self._by}, **self._state, TIMER: MOMENT}

    def run(self, work: Work) -> Done:
        timer = pl.col(TIMERS).list.first().struct.field("at").cast(MOMENT)
        states = work.states.with_columns_seq(timer.alias(TIMER))
        events = pl.DataFrame(schema=self._events)
        if work.events is not None:
            events = work.events.select_seq(*self._events).with_columns_seq(pl.col(TIME).cast(MOMENT))
            states = self._touched(states, work.events)
        results, kept = self._call(events, states, work.moment)
        made, rounds = [results], 1 if work.ended else -1
        # A timer that a function set for a moment that has already passed is due at once.
        again = (pl.col(TIMER).to_physical() <= work.moment).fill_null(False)
        while rounds and (due := kept.filter(again)).height:
            more, after = self._call(events.clear(), due, work.moment)
            kept = pl.concat([kept.filter(~again), after])
            made.append(more)
            rounds -= 1
        return self._done(work, pl.concat(made), kept)

    def _touched(self, states: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
        """The states as the events find them: reset where `ttl` has passed and no timer waits."""
        seen = events.group_by(self._by).agg(pl.col(TIME).min().alias(_FIRST), pl.col(TIME).max())
        joined = key_join(states, seen, self._by, "left", nulls_equal=True)
        if self._ttl is not None and self._state:
            over = ((pl.col(_FIRST) - pl.col(TOUCHED) >= self._ttl) & pl.col(TIMERS).is_null()).fill_null(False)
            joined = joined.with_columns_seq(pl.when(~over).then(pl.col(name)).alias(name) for name in self._state)
        return joined.with_columns_seq(pl.max_horizontal(TOUCHED, TIME).alias(TOUCHED)).drop(_FIRST, TIME)

    def _call(self, events: pl.DataFrame, states: pl.DataFrame, moment: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The function's results, and the states it returns; a due timer is shown as one that has fired."""
        due = pl.col(TIMER).to_physical() <= moment
        states = states.with_columns_seq(pl.when(due).then(TIMER).alias(FIRED), pl.when(~due).then(TIMER).alias(TIMER))
        try:
            results, after = self._function(events, states.select_seq(*self._given_back, FIRED))
            results = results.select_seq(*self._returns).cast(self._returns)
            if TIMER not in after.columns:
                after = after.with_columns_seq(pl.lit(None, MOMENT).alias(TIMER))
            after = after.select_seq(*self._given_back).cast(self._given_back)
        except Exception as error:
            raise self._wrong(raised(error, self._function)) from error
        joined = key_join(after, states.select_seq(*self._by, TOUCHED, FIRED), self._by, nulls_equal=True)
        if joined.height != after.height or after.select_seq(pl.struct(self._by).is_duplicated().any()).item():
            raise self._wrong("it gave back a key twice, or one that it was not given")
        if joined.select_seq((pl.col(TIMER) <= pl.col(FIRED)).any()).item():
            raise self._wrong("it set a timer again that has just fired")
        return results, joined.with_columns_seq(pl.max_horizontal(TOUCHED, pl.col(FIRED).to_physical()).alias(TOUCHED)).drop(FIRED)

    def _done(self, work: Work, results: pl.DataFrame, kept: pl.DataFrame) -> Done:
        waiting = pl.col(TIMER).to_physical()
        timers = pl.concat_list(pl.struct(pl.lit("").alias("name"), waiting.alias("at"))).cast(TIMER_KIND)
        states = kept.with_columns_seq(pl.when(waiting > work.moment).then(timers).alias(TIMERS))
        something = pl.any_horizontal(pl.col(name).is_not_null() for name in (TIMERS, *self._state))
        states = states.filter(something).select_seq(*self._by, TOUCHED, TIMERS, *self._state)
        known = work.states.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in (TIMERS, *self._state)))
        gone = known.join(states, on=self._by, how="anti", nulls_equal=True).select_seq(*self._by, *KEPT, *self._state)
        return Done(results.with_columns_seq(pl.col(TIME).to_physical()), states, gone)

    def _wrong(self, what: str) -> JobError:
        return JobError(
            f"the function of step {self._step!r} cannot continue: {what}",
            why="it works on all events at once, so no single event can be identified as the bad one",
            hint="correct it and start the job again; nothing of this epoch is committed",
        )


def _kinds(columns: pa.Schema) -> dict[str, pl.DataType]:
    return {field.name: dtype(field.type) for field in columns}
