"""Duplicates: of the records of a key within a stretch of event time the first goes on, and the others are counted.

Which is the first does not depend on how records were batched: within a partition it is their offset, within an epoch the partition
and then the offset. What has gone on stays: a record of a later epoch does not take its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.arrival import in_order_of_arrival, placed
from headrace.operators.changes import TIME, added
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of
from headrace.operators.expiring import ExpiringState
from headrace.operators.lateness import in_time
from headrace.operators.memory import Memory
from headrace.operators.store import Store
from headrace.operators.time import EpochTime
from headrace.plan.dedup import Dedup

# The times of a key's records that went on: the latest, and those before it that may still have duplicates.
_LATEST, _EARLIER = "_latest", "_earlier"
_NUMBER, _OTHER = "_number", "_other"
# After so many rounds, each of which looks at all keys at once, the few keys that are left are looked at one by one.
_ROUNDS = 8


@dataclass(frozen=True)
class DedupSpec:
    """The first record by key within `ttl` microseconds, before or after it; None: ever. `columns` are those that go on."""

    by: tuple[str, ...]
    columns: tuple[str, ...]
    ttl: int | None
    lateness: int = 0

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Records as they are. One behind the watermark is late: what it might be a duplicate of may be forgotten."""
        records, late = in_time(records, time.before - self.lateness)
        # How many of them are duplicates the state counts.
        return Entered(placed(records, (*self.columns, TIME)), 0, late)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> Firsts:
        return Firsts(self)


class Firsts(Memory[ExpiringState]):
    """The keys of one shard with the times of their records that went on."""

    def __init__(self, spec: DedupSpec) -> None:
        self._spec = spec
        self._by = list(spec.by)
        # A row that is over does no harm: a record in time is too far from it.
        super().__init__(ExpiringState("first", spec.by, _LATEST, None if spec.ttl is None else spec.ttl + spec.lateness))

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Let the first records go on, remember their times, and forget those that no record in time can be a duplicate of."""
        if not arrived.rows:
            self._state.forget(time.after, store)
            return Outcome()
        rows = in_order_of_arrival(pl.concat(arrived.rows))
        slim = rows.select(*self._by, TIME).with_row_index(_NUMBER)
        known = self._known(slim, time)
        passed = self._passed(slim if known is None else self._unlike(slim, known))
        self._remember(passed, known, time, store)
        self._state.forget(time.after, store)
        chosen = rows[passed.get_column(_NUMBER).sort()].select(*self._spec.columns, TIME)
        counts = {"taken": rows.height, "out": chosen.height, "duplicate": rows.height - chosen.height}
        return Outcome([added(chosen)] if chosen.height else [], counts=counts)

    def _known(self, records: pl.DataFrame, time: EpochTime) -> pl.DataFrame | None:
        """What is remembered of the keys of records, without what is over."""
        found = self._state.find(records.select(self._by).unique())
        if found is None or self._spec.ttl is None:
            return found
        found = found.filter(pl.col(_LATEST) + self._spec.ttl + self._spec.lateness > time.before)
        return None if found.is_empty() else found

    def _unlike(self, records: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
        """The records that are no duplicates of what went on in earlier epochs."""
        if self._spec.ttl is None:
            return records.join(known, on=self._by, how="anti", nulls_equal=True, maintain_order="left")
        joined = records.join(known, on=self._by, how="left", nulls_equal=True, maintain_order="left")
        joined = joined.filter(self._apart(pl.col(_LATEST)))
        several = joined.filter(pl.col(_EARLIER).is_not_null())
        kept = joined.select(records.columns)
        if several.is_empty():
            return kept
        near = several.explode(_EARLIER, keep_nulls=False, empty_as_null=False).filter(~self._apart(pl.col(_EARLIER)))
        return kept.join(near.select(_NUMBER).unique(), on=_NUMBER, how="anti", maintain_order="left")

    def _apart(self, other: pl.Expr) -> pl.Expr:
        """Whether another record is so far away in time, or there is none."""
        return ((pl.col(TIME) - other).abs() >= self._spec.ttl).fill_null(True)

    def _passed(self, records: pl.DataFrame) -> pl.DataFrame:
        """The records that go on: of each key the first, then the first that is far enough from it, and so on."""
        first = pl.struct(self._by).is_first_distinct()
        chosen = []
        for _ in range(_ROUNDS):
            is_first = records.select(first.alias("first")).get_column("first")
            chosen.append(records.filter(is_first))
            records = records.filter(~is_first)
            if records.is_empty() or self._spec.ttl is None:
                return pl.concat(chosen)
            times = chosen[-1].select(*self._by, pl.col(TIME).alias(_OTHER))
            records = records.join(times, on=self._by, how="left", nulls_equal=True, maintain_order="left")
            records = records.filter(self._apart(pl.col(_OTHER))).drop(_OTHER)
        chosen.append(self._one_by_one(records, self._spec.ttl or 0))
        return pl.concat(chosen)

    def _one_by_one(self, records: pl.DataFrame, ttl: int) -> pl.DataFrame:
        # In a stretch of `ttl` at most one record goes on, so only those of three stretches can be near.
        gone_on: dict[tuple[object, ...], int] = {}
        chosen = []
        for *key, time in records.select(*self._by, TIME).iter_rows():
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
            old = known.select(*self._by, pl.lit(True).alias(_OTHER))
            passed = passed.join(old, on=self._by, how="left", nulls_equal=True)
            alone &= pl.col(_OTHER).is_null()
        is_alone = passed.select(alone.alias("alone")).get_column("alone")
        earlier = pl.lit(None, pl.List(pl.Int64)).alias(_EARLIER)
        single = passed.filter(is_alone).select(*self._by, pl.col(TIME).alias(_LATEST), earlier)
        parts = [single] if is_alone.all() else [single, self._several(passed.filter(~is_alone), known, time)]
        self._state.put(pl.concat(parts), store)

    def _several(self, passed: pl.DataFrame, known: pl.DataFrame | None, time: EpochTime) -> pl.DataFrame:
        """Rows of keys of which several records went on, without the times that are over."""
        times = [passed.select(*self._by, TIME)]
        if known is not None:
            old = known.join(passed, on=self._by, how="semi", nulls_equal=True)
            before = old.explode(_EARLIER, keep_nulls=False, empty_as_null=False).filter(pl.col(_EARLIER).is_not_null())
            times += [old.select(*self._by, pl.col(_LATEST).alias(TIME)), before.select(*self._by, pl.col(_EARLIER).alias(TIME))]
        latest = pl.col(TIME).max()
        needed = (pl.col(TIME) + (self._spec.ttl or 0) + self._spec.lateness > time.after) & (pl.col(TIME) < latest)
        grouped = pl.concat(times).group_by(self._by).agg(latest.alias(_LATEST), pl.col(TIME).filter(needed).sort().alias(_EARLIER))
        some = pl.when(pl.col(_EARLIER).list.len() > 0).then(_EARLIER)
        return grouped.select(*self._by, _LATEST, some.alias(_EARLIER))


@operator_of.register
def _(node: Dedup) -> Made:
    ttl = None if node.ttl is None else microseconds(node.ttl)
    return Made(DedupSpec(node.by, tuple(node.columns.names), ttl, microseconds(node.input.lateness)))
