"""Each record with the previous one of its key, in the order of event time, whatever the order of arrival."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.changes import TIME, added
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of, single
from headrace.operators.event_time.arrival_order import contents_of, same_key
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.event_time.late import in_time
from headrace.operators.key_join import key_join
from headrace.operators.state.chunks import Chunks
from headrace.operators.state.expiring import ExpiringState
from headrace.operators.state.persistent import SeveralStates
from headrace.operators.state.store import Store
from headrace.plan.tables.previous import PREVIOUS, WithPrevious

# The time of the previous record, and the order among records of one key and time.
_BEFORE, _CONTENTS, _LAST = "_before", "_contents", "_last"


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
        return Entered(records.select(*self.columns, TIME), records.height, late)

    def closing(self, moment: int) -> int:
        return moment + 1

    def fresh(self) -> Pairs:
        return Pairs(self)


class Pairs(SeveralStates):
    """The records of one shard that wait for the watermark, and the last processed one of each key."""

    def __init__(self, spec: PreviousSpec) -> None:
        self._spec = spec
        self._by = list(spec.by)
        self._waiting = Chunks("waiting", TIME, lambda frame: frame)
        self._last = ExpiringState("last", spec.by, _BEFORE, spec.ttl)
        self._kept = [*self._by, _BEFORE, *(f"{PREVIOUS}{name}" for name in spec.taken)]
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
        ordered = self._in_order(released)
        shown = {_BEFORE: TIME, **{f"{PREVIOUS}{name}": name for name in self._spec.taken}}
        follows = same_key(self._by)
        pairs = ordered.with_columns(
            follows.alias("_follows"),
            (~same_key(self._by, -1)).alias(_LAST),
            *(pl.when(follows).then(pl.col(name).shift(1)).alias(new) for new, name in shown.items()),
        )
        known = self._last.find(pairs.filter(~pl.col("_follows")).select(self._by))
        if known is not None:
            # Each known key begins with its last record.
            first = pairs.filter(~pl.col("_follows")).drop(shown)
            first = key_join(first, known.select(self._kept), self._by, "left", nulls_equal=True).select(pairs.columns)
            pairs = pl.concat([first, pairs.filter("_follows")])
        last = pairs.filter(_LAST).select(*self._by, *(pl.col(name).alias(new) for new, name in shown.items()))
        self._last.put(last, store)
        return self._near(pairs).select(*self._spec.columns, *self._kept[len(self._by) + 1 :], TIME)

    def _near(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Without records that are too far before."""
        if self._spec.ttl is None:
            return pairs
        near = pl.col(TIME) - pl.col(_BEFORE) < self._spec.ttl
        return pairs.with_columns(pl.when(near).then(pl.col(name)).alias(name) for name in self._kept[len(self._by) + 1 :])

    def _in_order(self, records: pl.DataFrame) -> pl.DataFrame:
        """By key and time. Records of the same time have no order of their own: their contents decide, not their arrival."""
        ordered = records.sort(*self._by, TIME)
        if not ordered.select((same_key(self._by) & (pl.col(TIME) == pl.col(TIME).shift(1))).any()).item():
            return ordered
        contents = contents_of(self._spec.columns)
        return records.with_columns(contents.alias(_CONTENTS)).sort(*self._by, TIME, _CONTENTS).drop(_CONTENTS)


@operator_of.register
def _(node: WithPrevious) -> Made:
    ttl = None if node.ttl is None else microseconds(node.ttl)
    return single(PreviousSpec(node.by, tuple(node.input.columns.names), node.taken, ttl, microseconds(node.input.lateness)))
