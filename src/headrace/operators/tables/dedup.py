"""Duplicates: the first record of a key within a stretch of event time passes, and the others are counted.

The choice of the first does not depend on batches: within a partition it is by offset, within an epoch by partition and then by offset. A
record that has passed stays: a record of a later epoch does not replace it.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.changes import TIME, added
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of, single
from headrace.operators.event_time.arrival_order import in_order_of_arrival, placed
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.event_time.late import in_time
from headrace.operators.key_join import key_join
from headrace.operators.state.expiring import ExpiringState
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store
from headrace.plan.tables.dedup import Dedup

# The times of a key's records that passed: the latest, and earlier ones that may still have duplicates.
_LATEST, _EARLIER = "_latest", "_earlier"
_NUMBER, _OTHER = "_number", "_other"
# After this many rounds, each over all keys at once, the few remaining keys are processed one by one.
_ROUNDS = 8


@dataclass(frozen=True)
class DedupSpec:
    """The first record by key within `ttl` microseconds, before or after it; None: ever. `columns` are those that pass."""

    by: tuple[str, ...]
    columns: tuple[str, ...]
    ttl: int | None
    lateness: int = 0

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Records as they are. One behind the watermark is late: the record that it might repeat may be forgotten."""
        records, late = in_time(records, time.before - self.lateness)
        # The state counts the duplicates among them.
        return Entered(placed(records, (*self.columns, TIME)), 0, late)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> Firsts:
        return Firsts(self)


class Firsts(OneState[ExpiringState]):
    """The keys of one shard with the times of their records that passed."""

    def __init__(self, spec: DedupSpec) -> None:
        self._spec = spec
        self._by = list(spec.by)
        # An expired row does no harm: a record in time is too far from it.
        super().__init__(ExpiringState("first", spec.by, _LATEST, None if spec.ttl is None else spec.ttl + spec.lateness))

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Let the first records pass, remember their times, and forget those that no record in time can be a duplicate of."""
        if not arrived.rows:
            self._state.forget(time.after, store)
            return Outcome()
        rows = in_order_of_arrival(pl.concat(arrived.rows))
        slim = rows[[*self._by, TIME]].with_row_index(_NUMBER)
        known = self._known(slim, time)
        passed = self._passed(slim if known is None else self._unlike(slim, known))
        self._remember(passed, known, time, store)
        self._state.forget(time.after, store)
        chosen = rows[passed.get_column(_NUMBER).sort()][[*self._spec.columns, TIME]]
        counts = {"taken": rows.height, "out": chosen.height, "duplicate": rows.height - chosen.height}
        return Outcome([added(chosen)] if chosen.height else [], counts=counts)

    def _known(self, records: pl.DataFrame, time: EpochTime) -> pl.DataFrame | None:
        """The state of the records' keys, without expired times."""
        found = self._state.find(records[self._by].unique())
        if found is None or self._spec.ttl is None:
            return found
        found = found.filter(pl.col(_LATEST) + self._spec.ttl + self._spec.lateness > time.before)
        return None if found.is_empty() else found

    def _unlike(self, records: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
        """The records that are not duplicates of those that passed in earlier epochs."""
        if self._spec.ttl is None:
            return records.join(known, on=self._by, how="anti", nulls_equal=True, maintain_order="left")
        joined = key_join(records, known, self._by, "left", nulls_equal=True)
        joined = joined.filter(self._apart(pl.col(_LATEST)))
        several = joined.filter(pl.col(_EARLIER).is_not_null())
        kept = joined[records.columns]
        if several.is_empty():
            return kept
        near = several.explode(_EARLIER, keep_nulls=False, empty_as_null=False).filter(~self._apart(pl.col(_EARLIER)))
        return kept.join(near.select_seq(_NUMBER).unique(), on=_NUMBER, how="anti", maintain_order="left")

    def _apart(self, other: pl.Expr) -> pl.Expr:
        """Whether another record is that far away in time, or there is none."""
        return ((pl.col(TIME) - other).abs() >= self._spec.ttl).fill_null(True)

    def _passed(self, records: pl.DataFrame) -> pl.DataFrame:
        """The records that pass: the first of each key, then the first that is far enough from it, and so on."""
        first = pl.struct(self._by).is_first_distinct()
        chosen = []
        for _ in range(_ROUNDS):
            is_first = records.select_seq(first.alias("first")).get_column("first")
            chosen.append(records.filter(is_first))
            records = records.filter(~is_first)
            if records.is_empty() or self._spec.ttl is None:
                return pl.concat(chosen)
            times = chosen[-1].select_seq(*self._by, pl.col(TIME).alias(_OTHER))
            records = key_join(records, times, self._by, "left", nulls_equal=True)
            records = records.filter(self._apart(pl.col(_OTHER))).drop(_OTHER)
        chosen.append(self._one_by_one(records, self._spec.ttl or 0))
        return pl.concat(chosen)

    def _one_by_one(self, records: pl.DataFrame, ttl: int) -> pl.DataFrame:
        # In a stretch of `ttl` at most one record passes, so only those of three stretches can be near.
        gone_on: dict[tuple[object, ...], int] = {}
        chosen = []
        for *key, time in records.select_seq(*self._by, TIME).iter_rows():
            stretch = time // ttl
            near = (gone_on.get((*key, place)) for place in (stretch - 1, stretch, stretch + 1))
            apart = all(other is None or abs(time - other) >= ttl for other in near)
            chosen.append(apart)
            if apart:
                gone_on[*key, stretch] = time
        return records.filter(pl.Series(chosen, dtype=pl.Boolean))

    def _remember(self, passed: pl.DataFrame, known: pl.DataFrame | None, time: EpochTime, store: Store) -> None:
        if passed.is_empty():
            return
        alone = pl.struct(self._by).is_unique()
        if known is not None:
            old = known.select_seq(*self._by, pl.lit(True).alias(_OTHER))
            passed = key_join(passed, old, self._by, "left", nulls_equal=True)
            alone &= pl.col(_OTHER).is_null()
        is_alone = passed.select_seq(alone.alias("alone")).get_column("alone")
        earlier = pl.lit(None, pl.List(pl.Int64)).alias(_EARLIER)
        single = passed.filter(is_alone).select_seq(*self._by, pl.col(TIME).alias(_LATEST), earlier)
        parts = [single] if is_alone.all() else [single, self._several(passed.filter(~is_alone), known, time)]
        self._state.put(pl.concat(parts), store)

    def _several(self, passed: pl.DataFrame, known: pl.DataFrame | None, time: EpochTime) -> pl.DataFrame:
        """Rows of keys of which several records passed, without expired times."""
        times = [passed[[*self._by, TIME]]]
        if known is not None:
            old = known.join(passed, on=self._by, how="semi", nulls_equal=True)
            before = old.explode(_EARLIER, keep_nulls=False, empty_as_null=False).filter(pl.col(_EARLIER).is_not_null())
            times += [old.select_seq(*self._by, pl.col(_LATEST).alias(TIME)), before.select_seq(*self._by, pl.col(_EARLIER).alias(TIME))]
        latest = pl.col(TIME).max()
        needed = (pl.col(TIME) + (self._spec.ttl or 0) + self._spec.lateness > time.after) & (pl.col(TIME) < latest)
        grouped = pl.concat(times).group_by(self._by).agg(latest.alias(_LATEST), pl.col(TIME).filter(needed).sort().alias(_EARLIER))
        some = pl.when(pl.col(_EARLIER).list.len() > 0).then(_EARLIER)
        return grouped.select_seq(*self._by, _LATEST, some.alias(_EARLIER))


@operator_of.register
def _(node: Dedup) -> Made:
    ttl = None if node.ttl is None else microseconds(node.ttl)
    return single(DedupSpec(node.by, tuple(node.columns.names), ttl, microseconds(node.input.lateness)))
