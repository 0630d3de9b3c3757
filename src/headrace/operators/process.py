"""The user's own logic by key: events wait until their turn, states are found and kept, timers are found when they are due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.arrival import by_key_as_they_came, in_order_of_time, placed, same_key
from headrace.operators.changes import TIME, added
from headrace.operators.chunks import Chunks
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of
from headrace.operators.expiring import ExpiringState
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.lateness import in_time
from headrace.operators.memory import Memories
from headrace.operators.store import Store
from headrace.operators.time import BEGINNING, END, EpochTime
from headrace.operators.turns import Turns
from headrace.operators.vectorised import Vectorised
from headrace.operators.work import DUE, KEPT, TIMERS, TOUCHED, UNTIL, Declared, Done, Work
from headrace.plan.process import IN_TIME, Process


@dataclass(frozen=True)
class ProcessSpec:
    """The user's functions over records by key, which may come `lateness` microseconds behind the watermark."""

    declared: Declared
    lateness: int = 0

    @property
    def by(self) -> tuple[str, ...]:
        return self.declared.by

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Records as they are. One behind the watermark is late: those after it have had their turn."""
        records, late = in_time(records, time.before - self.lateness)
        return Entered(placed(records, (*self.declared.columns.names, TIME)), records.height, late)

    def closing(self, moment: int) -> int:
        return moment + 1

    def fresh(self) -> Processing:
        return Processing(self)


class Runs(Protocol):
    """What calls the user's functions."""

    def run(self, work: Work) -> Done: ...


class Processing(Memories):
    """The events of one shard that wait for the watermark, and a row a key with its state and timers."""

    def __init__(self, spec: ProcessSpec) -> None:
        declared = spec.declared
        self._in_order, self._lateness = declared.in_order, spec.lateness
        self._by = list(spec.by)
        self._waiting = Chunks("waiting", TIME, lambda frame: frame)
        self._kept = ExpiringState("key", spec.by, UNTIL, declared.ttl)
        self._kinds = KEPT | {field.name: dtype(field.type) for field in declared.state}
        # No timer is due before this moment.
        self._quiet_until = BEGINNING
        self._runs: Runs = Vectorised(declared) if declared.logic.vectorised else Turns(declared)
        super().__init__(self._waiting, self._kept)

    def restore(self, manifest: str | None, store: Store) -> None:
        super().restore(manifest, store)
        self._quiet_until = BEGINNING

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Give the functions the events whose turn it is and the timers that are due, and keep what they leave behind."""
        # A step before that still corrects its results gives them out behind the watermark: those that may come are waited for.
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
        if moment < self._quiet_until:
            return None
        found = self._kept.where(pl.col(DUE) <= moment)
        least = self._kept.least(DUE, pl.col(DUE) > moment)
        self._quiet_until = END if least is None else least
        return None if found is None else found.select(self._by)

    def _work(self, events: pl.DataFrame | None, due: pl.DataFrame | None, moment: int, *, ended: bool) -> Work:
        if events is None:
            assert due is not None
            keys, counts = due, [0] * due.height
        else:
            first = events.select((~same_key(self._by)).alias("first")).get_column("first")
            starts = first.arg_true()
            keys = events.filter(first).select(self._by)
            counts = [*starts.diff(null_behavior="ignore").drop_nulls().to_list(), events.height - starts[-1]]
            if due is not None:
                quiet = due.join(keys, on=self._by, how="anti", nulls_equal=True)
                keys, counts = pl.concat([keys, quiet]), counts + [0] * quiet.height
        found = self._kept.find(keys)
        if found is None:
            states = keys.with_columns(pl.lit(None, kind).alias(name) for name, kind in self._kinds.items())
        else:
            states = keys.join(found, on=self._by, how="left", nulls_equal=True, maintain_order="left")
        return Work(events, keys, states.select(*self._by, *self._kinds), counts, moment, ended)

    def _keep(self, done: Done, store: Store) -> None:
        latest = pl.col(TIMERS).list.eval(pl.element().struct.field("at")).list.max()
        earliest = pl.col(TIMERS).list.eval(pl.element().struct.field("at")).list.min()
        states = done.states.with_columns(pl.max_horizontal(TOUCHED, latest).alias(UNTIL), earliest.alias(DUE))
        states = states.select(*self._by, *self._kinds)
        if states.height or done.gone.height:
            self._kept.change(states, done.gone, store)
            least = states.get_column(DUE).min()
            if isinstance(least, int):
                self._quiet_until = min(self._quiet_until, least)


@operator_of.register
def _(node: Process) -> Made:
    ttl = None if node.ttl is None else microseconds(node.ttl)
    columns, in_order = node.input.columns, node.order == IN_TIME
    declared = Declared(node.name, node.by, columns, node.state, node.columns, node.logic, in_order, ttl)
    return Made(ProcessSpec(declared, microseconds(node.input.lateness)))
