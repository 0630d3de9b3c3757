"""The user's own logic by key: events wait for their turn, states are found and stored, due timers are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.changes import TIME, added
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of, single
from headrace.operators.event_time.arrival_order import by_key_as_they_came, in_order_of_time, placed, same_key
from headrace.operators.event_time.epoch_time import END, EpochTime
from headrace.operators.event_time.late import in_time
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.key_join import key_join
from headrace.operators.process.per_event import PerEvent
from headrace.operators.process.vectorized import Vectorized
from headrace.operators.process.work import DUE, KEPT, TIMERS, TOUCHED, UNTIL, Declared, Done, Work
from headrace.operators.state.chunks import Chunks
from headrace.operators.state.expiring import ExpiringState
from headrace.operators.state.persistent import SeveralStates
from headrace.operators.state.store import Store
from headrace.plan.process import IN_TIME, Process


@dataclass(frozen=True)
class ProcessSpec:
    """The user's functions over records by key, which may arrive `lateness` microseconds behind the watermark."""

    declared: Declared
    lateness: int = 0

    @property
    def by(self) -> tuple[str, ...]:
        return self.declared.by

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Records as they are. One behind the watermark is late: those after it have been processed."""
        records, late = in_time(records, time.before - self.lateness)
        return Entered(placed(records, (*self.declared.columns.names, TIME)), records.height, late)

    def closing(self, moment: int) -> int:
        return moment + 1

    def fresh(self) -> Processing:
        return Processing(self)


class Runs(Protocol):
    """The caller of the user's functions."""

    def run(self, work: Work) -> Done: ...


class Processing(SeveralStates):
    """The events of one shard that wait for the watermark, and a row for each key with its state and timers."""

    def __init__(self, spec: ProcessSpec) -> None:
        declared = spec.declared
        self._in_order, self._lateness = declared.in_order, spec.lateness
        self._by = list(spec.by)
        self._waiting = Chunks("waiting", TIME, lambda frame: frame)
        self._kept = ExpiringState("key", spec.by, UNTIL, declared.ttl, due=pl.col(DUE))
        self._kinds = KEPT | {field.name: dtype(field.type) for field in declared.state}
        self._runs: Runs = Vectorized(declared) if declared.logic.vectorized else PerEvent(declared)
        super().__init__(self._waiting, self._kept)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Call the functions with the events whose turn it is and the due timers, and store their results."""
        # An earlier step that still corrects its results emits them behind the watermark: these are waited for.
        before, after = time.before - self._lateness, time.after - self._lateness
        events = self._events(arrived, before, after, store)
        due = self._due(after)
        outcome = Outcome()
        if events is not None or due is not None:
            done = self._runs.run(self._work(events, due, after, ended=time.after >= END))
            self._keep(done, store)
            results = [added(done.results)] if done.results.height else []
            outcome = Outcome(results, bad=done.bad, failed=done.failed)
        self._kept.forget(after, store)
        return outcome

    def _events(self, arrived: Arrived, before: int, after: int, store: Store) -> pl.DataFrame | None:
        if not self._in_order:
            return by_key_as_they_came(pl.concat(arrived.rows), self._by) if arrived.rows else None
        if arrived.rows:
            self._waiting.add(pl.concat(arrived.rows))
        released = self._waiting.between(before, after)
        self._waiting.save(after, store)
        return None if released is None else in_order_of_time(released, self._by)

    def _due(self, moment: int) -> pl.DataFrame | None:
        """The keys that have a timer which the watermark has passed."""
        found = self._kept.reached("due", moment)
        return None if found is None else found.select_seq(self._by)

    def _work(self, events: pl.DataFrame | None, due: pl.DataFrame | None, moment: int, *, ended: bool) -> Work:
        if events is None:
            assert due is not None
            keys, counts = due, [0] * due.height
        else:
            first = events.select_seq((~same_key(self._by)).alias("first")).get_column("first")
            starts = first.arg_true()
            keys = events.filter(first).select_seq(self._by)
            counts = [*starts.diff(null_behavior="ignore").drop_nulls().to_list(), events.height - starts[-1]]
            if due is not None:
                quiet = due.join(keys, on=self._by, how="anti", nulls_equal=True)
                keys, counts = pl.concat([keys, quiet]), counts + [0] * quiet.height
        found = self._kept.find(keys)
        if found is None:
            states = keys.with_columns_seq(pl.lit(None, kind).alias(name) for name, kind in self._kinds.items())
        else:
            states = key_join(keys, found, self._by, "left", nulls_equal=True)
        return Work(events, keys, states.select_seq(*self._by, *self._kinds), counts, moment, ended)

    def _keep(self, done: Done, store: Store) -> None:
        latest = pl.col(TIMERS).list.eval(pl.element().struct.field("at")).list.max()
        earliest = pl.col(TIMERS).list.eval(pl.element().struct.field("at")).list.min()
        states = done.states.with_columns_seq(pl.max_horizontal(TOUCHED, latest).alias(UNTIL), earliest.alias(DUE))
        states = states.select_seq(*self._by, *self._kinds)
        if states.height or done.gone.height:
            self._kept.change(states, done.gone, store)


@operator_of.register
def _(node: Process) -> Made:
    ttl = None if node.ttl is None else microseconds(node.ttl)
    columns, in_order = node.input.columns, node.order == IN_TIME
    declared = Declared(node.name, node.by, columns, node.state, node.columns, node.logic, in_order, ttl)
    return single(ProcessSpec(declared, microseconds(node.input.lateness)))
