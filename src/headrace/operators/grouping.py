"""Tables that a stream keeps up to date: aggregates per key over everything so far, and the latest record per key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.aggregate import Aggregate
from headrace.operators.aggregates import ROWS, accumulators, additive, finishes, partial, present, united
from headrace.operators.arguments import aggregates_of
from headrace.operators.changes import ADD, CHANGED, OP, TIME, added, as_upserts, retracted
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of
from headrace.operators.flow import ROW
from headrace.operators.keyed import GONE, KeyedState, Located
from headrace.operators.memory import Memory
from headrace.operators.sides import OFFSET, PARTITION
from headrace.operators.store import Store
from headrace.operators.time import BEGINNING, END, EpochTime
from headrace.plan.aggregation import GroupAggregate

LAST = "_last"


@dataclass(frozen=True)
class GroupSpec:
    """Aggregates by key; a key without a record for `ttl` microseconds of event time is forgotten. `by` has at least one column.

    `upserts`: a row that is replaced need not be taken back.
    """

    by: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    ttl: int | None
    upserts: bool = False

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Partial results of records by key."""
        return Entered(partial(records, self.by, self.aggregates, largest={LAST: TIME}), records.height)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> Groups:
        return Groups(self)


@dataclass(frozen=True)
class TableSpec:
    """The latest record per key by event time; of equal times the one that came last.

    `follows`: they are changes of a table with at most one row for each of these keys. The last of them holds, whatever its time: an
    older row comes forth there when the latest is taken back.
    """

    by: tuple[str, ...]
    ttl: int | None
    follows: bool = False

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """The last record of each key in a batch."""
        if self.follows:
            return Entered(as_upserts(records.drop(ROW, strict=False), self.by), records.height)
        ordered = records.drop(ROW, strict=False).sort(*_arrival(records), maintain_order=True, nulls_last=False)
        return Entered(ordered.unique(subset=list(self.by), keep="last", maintain_order=True), records.height)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> Latest:
        return Latest(self)


class KeyedTable(Memory[KeyedState], ABC):
    """What group aggregates and tables share: rows by key that expire, and a changelog of them."""

    def __init__(self, key: Sequence[str], ttl: int | None) -> None:
        super().__init__(KeyedState("row", key))
        self._key = list(key)
        self._ttl = ttl
        # No row expires before this. Looking for those that do reads every row, so it is done only when there can be some.
        self._quiet_until = BEGINNING

    def restore(self, manifest: str | None, store: Store) -> None:
        super().restore(manifest, store)
        self._quiet_until = BEGINNING

    def table(self) -> pl.DataFrame | None:
        """All rows that hold."""
        rows = self._state.where(pl.lit(True))
        return None if rows is None else added(self._finish(rows))

    @abstractmethod
    def _finish(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of the state as they are given out."""

    def _put(self, rows: pl.DataFrame, store: Store, located: Located | None = None) -> None:
        self._state.put(rows, store, located)
        earliest = rows.get_column(LAST).min()
        if self._ttl is not None and isinstance(earliest, int):
            self._quiet_until = min(self._quiet_until, earliest + self._ttl)

    def _present(self, keys: pl.DataFrame, time: EpochTime) -> pl.DataFrame | None:
        """The rows of these keys that have not expired."""
        return self._unexpired(self._state.locate(keys), time)[0]

    def _unexpired(self, located: Located, time: EpochTime) -> tuple[pl.DataFrame | None, np.ndarray]:
        """Those of the rows found that have not expired, and which of the keys each is of."""
        found, places = located.found, located.places
        if found is None or self._ttl is None:
            return found, places
        # A row without a time is as good as over.
        lives = found.select((pl.col(LAST) + self._ttl > time.before).fill_null(False)).to_series()
        return (found.filter(lives), places[lives.to_numpy()]) if lives.any() else (None, places[:0])

    def _expire(self, time: EpochTime, store: Store) -> list[pl.DataFrame]:
        """Forget keys whose time is over, and take back their rows."""
        # That the input has ended is no event after which a key would have been silent for its time.
        if self._ttl is None or time.after < self._quiet_until or time.after >= END:
            return []
        over = self._state.where(pl.col(LAST) + self._ttl <= time.after)
        earliest = self._state.least(LAST, pl.col(LAST) + self._ttl > time.after)
        self._quiet_until = END if earliest is None else earliest + self._ttl
        if over is None:
            return []
        self._state.put(over.with_columns(pl.lit(True).alias(GONE)), store)
        expired_at = over.select(*self._key, (pl.col(LAST) + self._ttl).alias(CHANGED))
        return [retracted(self._finish(over).join(expired_at, on=self._key, how="left", nulls_equal=True))]


class Groups(KeyedTable):
    """Group aggregates of one shard: every key that got records is given out anew, its former result retracted."""

    def __init__(self, spec: GroupSpec) -> None:
        super().__init__(spec.by, spec.ttl)
        self._spec = spec
        self._parts = accumulators(spec.aggregates)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        if not arrived.rows:
            return Outcome(self._expire(time, store))
        new = self._merge(pl.concat(arrived.rows))
        located = self._state.locate(new)
        old, places = self._unexpired(located, time)
        results, aligned = [], old is None or additive(self._spec.aggregates)
        if old is not None:
            new = self._added(new, old, places) if aligned else self._merge(pl.concat([old.select(new.columns), new]))
            gone = old.join(new.filter(pl.col(ROWS) <= 0), on=self._key, how="semi", nulls_equal=True) if self._spec.upserts else old
            if gone.height:
                results.append(retracted(self._finish(gone)))
        self._put(new.with_columns((pl.col(ROWS) <= 0).alias(GONE)), store, located if aligned else None)
        results.append(added(self._finish(present(new))))
        return Outcome(results + self._expire(time, store))

    def _added(self, new: pl.DataFrame, old: pl.DataFrame, places: np.ndarray) -> pl.DataFrame:
        """New partial results with the old ones of some of their keys in them."""
        if old.height < new.height:
            numbers = np.full(new.height, old.height)
            numbers[places] = np.arange(old.height)
            old = pl.concat([old, old.clear(1)], rechunk=True)[numbers]
        known = [old.get_column(name).alias(f"{name} before") for name in (LAST, *self._parts)]
        sums = [(pl.col(name) + pl.col(f"{name} before").fill_null(0)).alias(name) for name in self._parts]
        return new.with_columns(known).select(*self._key, pl.max_horizontal(LAST, f"{LAST} before").alias(LAST), *sums)

    def _merge(self, frame: pl.DataFrame) -> pl.DataFrame:
        return united(frame, self._key, self._spec.aggregates, {LAST: pl.col(LAST).max()})

    def _finish(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select(*self._key, *finishes(self._spec.aggregates), pl.col(LAST).alias(TIME))


class Latest(KeyedTable):
    """The latest record of each key of one shard. A record that says its key is removed (`_op` -1) takes the row back."""

    def __init__(self, spec: TableSpec) -> None:
        super().__init__(spec.by, spec.ttl)
        self._follows = spec.follows

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        if not arrived.rows:
            return Outcome(self._expire(time, store))
        new = self._newest(pl.concat(arrived.rows)).with_columns(pl.col(TIME).alias(LAST))
        old = self._present(new, time)
        results = []
        if old is not None:
            if not self._follows:
                new = self._not_behind(new, old)
            replaced = old.join(new, on=self._key, how="semi", nulls_equal=True)
            if not replaced.is_empty():
                results.append(retracted(self._finish(replaced)))
        if not new.is_empty():
            self._put(new.with_columns((pl.col(OP) != ADD).alias(GONE)).drop(OP, TIME), store)
            results.append(new.filter(pl.col(OP) == ADD).drop(LAST))
        return Outcome(results + self._expire(time, store))

    def _newest(self, records: pl.DataFrame) -> pl.DataFrame:
        """Of the records of an epoch one a key, with what it does."""
        if self._follows:
            return as_upserts(records, self._key)
        ordered = (records if OP in records.columns else added(records)).sort(*_arrival(records), maintain_order=True, nulls_last=False)
        # Where a record came from matters only among those of one epoch.
        return ordered.unique(subset=self._key, keep="last", maintain_order=True).drop(PARTITION, OFFSET, strict=False)

    def _not_behind(self, new: pl.DataFrame, old: pl.DataFrame) -> pl.DataFrame:
        """A record older than the one that is there changes nothing."""
        known = new.join(old.select(*self._key, pl.col(LAST).alias("_known")), on=self._key, how="left", nulls_equal=True)
        return known.filter(pl.col("_known").is_null() | (pl.col(LAST) >= pl.col("_known"))).drop("_known")

    def _finish(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.drop(GONE, strict=False).rename({LAST: TIME})


def _arrival(records: pl.DataFrame) -> list[str]:
    """What puts records in order. Several tasks may have read one partition: what came later has the higher offset."""
    return [TIME, OFFSET] if OFFSET in records.columns else [TIME]


@operator_of.register
def _(node: GroupAggregate) -> Made:
    aggregates, arguments = aggregates_of(node)
    return Made(GroupSpec(node.by, aggregates, None if node.ttl is None else microseconds(node.ttl)), arguments)
