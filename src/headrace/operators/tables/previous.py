"""Each record with the previous one of its key, in the order of event time, whatever the order of arrival."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.changes import TIME, added
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of, single
from headrace.operators.event_time.arrival_order import contents_of
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.event_time.late import in_time
from headrace.operators.frames import columns_of, rows_at, rows_where
from headrace.operators.state.chunks import Chunks
from headrace.operators.state.expiring import ExpiringState
from headrace.operators.state.found_rows import distinct_keys
from headrace.operators.state.persistent import SeveralStates
from headrace.operators.state.store import Store
from headrace.plan.tables.previous import PREVIOUS, WithPrevious

# The time of the previous record.
_BEFORE = "_before"
# The place of a record that there is not.
_NOWHERE = -1


@dataclass(frozen=True)
class PreviousSpec:
    """The columns `taken` of the previous record, if it is less than `ttl` microseconds before; `columns` are those of the record."""

    by: tuple[str, ...]
    columns: tuple[str, ...]
    taken: tuple[str, ...]
    ttl: int | None
    lateness: int = 0

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Records as they are. One behind the watermark is late: those after it have been processed."""
        records, late = in_time(records, time.before - self.lateness)
        return Entered(columns_of(records, [*self.columns, TIME]), records.height, late)

    def closing(self, moment: int) -> int:
        return moment + 1

    def fresh(self) -> Pairs:
        return Pairs(self)


class Pairs(SeveralStates):
    """The records of one shard that wait for the watermark, and the last processed one of each key."""

    def __init__(self, spec: PreviousSpec) -> None:
        self._spec = spec
        self._by, self._taken = list(spec.by), list(spec.taken)
        self._shown = [f"{PREVIOUS}{name}" for name in spec.taken]
        self._waiting = Chunks("waiting", TIME, lambda frame: frame)
        self._last = ExpiringState("last", spec.by, _BEFORE, spec.ttl)
        super().__init__(self._waiting, self._last)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Hold records until the watermark has passed them, then emit them with the previous ones."""
        if arrived.rows:
            self._waiting.add(pl.concat(arrived.rows))
        # An earlier step that still corrects its results emits them behind the watermark: these are waited for.
        before, after = time.before - self._spec.lateness, time.after - self._spec.lateness
        released = self._waiting.between(before, after)
        results = [] if released is None else [added(self._paired(released, store))]
        self._waiting.save(after, store)
        self._last.forget(after, store)
        return Outcome(results)

    def _paired(self, released: pl.DataFrame, store: Store) -> pl.DataFrame:
        """Records by key and time, with the columns of the previous ones."""
        keys, numbers = distinct_keys(columns_of(released, self._by))
        records, numbers = self._in_order(released, numbers)
        first = np.append(True, numbers[1:] != numbers[:-1])
        times = records.get_column(TIME).to_numpy()
        # The place of the previous record: among these, or behind them among the known ones.
        places = np.where(first, _NOWHERE, np.arange(-1, len(first) - 1))
        earlier, moments = _named(columns_of(records, self._taken), self._shown), times
        located = self._last.locate(keys)
        if located.found is not None:
            known = np.full(keys.height, _NOWHERE)
            known[located.places] = len(first) + np.arange(len(located.places))
            places[first] = known[numbers[first]]
            earlier = pl.concat([earlier, columns_of(located.found, self._shown)], rechunk=True)
            moments = np.append(times, located.found.get_column(_BEFORE).to_numpy())
        self._keep(rows_where(records, np.append(first[1:], True)), store)
        if self._spec.ttl is not None:
            places[times - moments[places] >= self._spec.ttl] = _NOWHERE
        found = earlier[pl.Series(places.astype(np.uint32)).set(pl.Series(places == _NOWHERE), None)]
        return columns_of(records, [*self._spec.columns, TIME]).hstack(found)

    def _keep(self, last: pl.DataFrame, store: Store) -> None:
        self._last.put(_named(columns_of(last, [*self._by, TIME, *self._taken]), [*self._by, _BEFORE, *self._shown]), store)

    def _in_order(self, records: pl.DataFrame, numbers: np.ndarray) -> tuple[pl.DataFrame, np.ndarray]:
        """By key and time. Records of the same time have no order of their own: their contents decide, not their arrival."""
        times = records.get_column(TIME).to_numpy()
        order = np.lexsort((times, numbers))
        tied = (numbers[order][1:] == numbers[order][:-1]) & (times[order][1:] == times[order][:-1])
        if tied.any():
            contents = records.select_seq(contents_of(self._spec.columns)).to_series().to_numpy()
            order = np.lexsort((contents, times, numbers))
        return rows_at(records, order), numbers[order]


def _named(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """A frame that nothing else has, with other names."""
    frame.columns = names
    return frame


@operator_of.register
def _(node: WithPrevious) -> Made:
    ttl = None if node.ttl is None else microseconds(node.ttl)
    return single(PreviousSpec(node.by, tuple(node.input.columns.names), node.taken, ttl, microseconds(node.input.lateness)))
