"""Tables that a stream keeps up to date: aggregates per key over everything so far, and the latest record per key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.aggregates.arguments import aggregates_of
from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.aggregates.partials import ROWS, accumulators, additive, finishes, merged_duplicates, partial, present
from headrace.operators.changes import ADD, CHANGED, OP, TIME, added, as_upserts, retracted
from headrace.operators.columns import OFFSET, PARTITION, ROW
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of, single
from headrace.operators.event_time.arrival_order import contents_of
from headrace.operators.event_time.epoch_time import END, EpochTime
from headrace.operators.key_join import key_join
from headrace.operators.state.keyed import GONE, KeyedState, Located
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store
from headrace.plan.aggregates.nodes import GroupAggregate

LAST = "_last"


@dataclass(frozen=True)
class GroupSpec:
    """Aggregates by key; a key without a record for `ttl` microseconds of event time expires. `by` has at least one column.

    `upserts`: a replaced row need not be retracted.
    """

    by: tuple[str, ...]
    aggregates: tuple[EvaluatedCall, ...]
    ttl: int | None
    upserts: bool = False

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Partial results of records by key."""
        return Entered(partial(records, self.by, self.aggregates, largest={LAST: TIME}), records.height)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> Groups:
        return Groups(self)

    def with_upserts(self) -> GroupSpec:
        return replace(self, upserts=True)


@dataclass(frozen=True)
class TableSpec:
    """The latest record per key by event time; for equal times the one that arrived last, among results of one epoch the same on every run.

    `follows`: they are changes of a table with at most one row for each of these keys. The last of them is the live row, whatever its time:
    when the latest is retracted, an older row takes its place there.
    """

    by: tuple[str, ...]
    ttl: int | None
    follows: bool = False

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """The last record of each key in a batch."""
        if self.follows:
            return Entered(as_upserts(records.drop(ROW, strict=False), self.by), records.height)
        ordered = _in_order(records.drop(ROW, strict=False))
        return Entered(ordered.unique(subset=list(self.by), keep="last", maintain_order=True), records.height)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> Latest:
        return Latest(self)


class KeyedTable(OneState[KeyedState], ABC):
    """Base class of group aggregates and tables: rows by key that expire, and a changelog of them."""

    def __init__(self, key: Sequence[str], ttl: int | None) -> None:
        super().__init__(KeyedState("row", key, over=pl.col(LAST) + (ttl or 0)))
        self._key = list(key)
        self._ttl = ttl

    def table(self) -> pl.DataFrame | None:
        """All live rows."""
        rows = self._state.all()
        return None if rows is None else added(self._finish(rows))

    @abstractmethod
    def _finish(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of the state as they are emitted."""

    def _present(self, keys: pl.DataFrame, time: EpochTime) -> pl.DataFrame | None:
        """The rows of these keys that have not expired."""
        return self._unexpired(self._state.locate(keys), time)[0]

    def _unexpired(self, located: Located, time: EpochTime) -> tuple[pl.DataFrame | None, np.ndarray]:
        """The found rows that have not expired, and the key of each."""
        found, places = located.found, located.places
        if found is None or self._ttl is None:
            return found, places
        # A row without a time counts as expired.
        lives = found.select_seq((pl.col(LAST) + self._ttl > time.before).fill_null(False)).to_series()
        return (found.filter(lives), places[lives.to_numpy()]) if lives.any() else (None, places[:0])

    def _expire(self, time: EpochTime, store: Store) -> list[pl.DataFrame]:
        """Remove keys that have expired, and retract their rows."""
        # The end of the input is not a silence. Records that come with it may be older than the ttl all the same.
        moment = time.after if time.after < END else time.before
        if self._ttl is None or moment >= END:
            return []
        over = self._state.reached("over", moment)
        if over is None:
            return []
        self._state.put(over.with_columns_seq(pl.lit(True).alias(GONE)), store)
        expired_at = over.select_seq(*self._key, (pl.col(LAST) + self._ttl).alias(CHANGED))
        return [retracted(key_join(self._finish(over), expired_at, self._key, "left", nulls_equal=True))]


class Groups(KeyedTable):
    """Group aggregates of one shard: every key with new records is emitted again, and its previous result is retracted."""

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
            new = self._added(new, old, places) if aligned else self._merge(pl.concat([old.select_seq(new.columns), new]))
            gone = old.join(new.filter(pl.col(ROWS) <= 0), on=self._key, how="semi", nulls_equal=True) if self._spec.upserts else old
            if gone.height:
                results.append(retracted(self._finish(gone)))
        self._state.put(new.with_columns_seq((pl.col(ROWS) <= 0).alias(GONE)), store, located if aligned else None)
        results.append(added(self._finish(present(new))))
        return Outcome(results + self._expire(time, store))

    def _added(self, new: pl.DataFrame, old: pl.DataFrame, places: np.ndarray) -> pl.DataFrame:
        """New partial results merged with the old ones of their keys."""
        if old.height < new.height:
            numbers = np.full(new.height, old.height)
            numbers[places] = np.arange(old.height)
            old = pl.concat([old, old.clear(1)], rechunk=True)[numbers]
        known = [old.get_column(name).alias(f"{name} before") for name in (LAST, *self._parts)]
        sums = [(pl.col(name) + pl.col(f"{name} before").fill_null(0)).alias(name) for name in self._parts]
        return new.with_columns_seq(known).select_seq(*self._key, pl.max_horizontal(LAST, f"{LAST} before").alias(LAST), *sums)

    def _merge(self, frame: pl.DataFrame) -> pl.DataFrame:
        return merged_duplicates(frame, self._key, self._spec.aggregates, {LAST: pl.col(LAST).max()})

    def _finish(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select_seq(*self._key, *finishes(self._spec.aggregates), pl.col(LAST).alias(TIME))


class Latest(KeyedTable):
    """The latest record of each key of one shard. A record that removes its key (`_op` -1) retracts the row."""

    def __init__(self, spec: TableSpec) -> None:
        super().__init__(spec.by, spec.ttl)
        self._follows = spec.follows

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        if not arrived.rows:
            return Outcome(self._expire(time, store))
        new = self._newest(pl.concat(arrived.rows)).with_columns_seq(pl.col(TIME).alias(LAST))
        old = self._present(new, time)
        results = []
        if old is not None:
            if not self._follows:
                new = self._not_behind(new, old)
            replaced = old.join(new, on=self._key, how="semi", nulls_equal=True)
            if not replaced.is_empty():
                results.append(retracted(self._finish(replaced)))
        if not new.is_empty():
            self._state.put(new.with_columns_seq((pl.col(OP) != ADD).alias(GONE)).drop(OP, TIME), store)
            results.append(new.filter(pl.col(OP) == ADD).drop(LAST))
        return Outcome(results + self._expire(time, store))

    def _newest(self, records: pl.DataFrame) -> pl.DataFrame:
        """One record for each key of an epoch, with its operation."""
        if self._follows:
            return as_upserts(records, self._key)
        ordered = _in_order(records if OP in records.columns else added(records))
        # The origin of a record matters only among those of one epoch.
        return ordered.unique(subset=self._key, keep="last", maintain_order=True).drop(PARTITION, OFFSET, strict=False)

    def _not_behind(self, new: pl.DataFrame, old: pl.DataFrame) -> pl.DataFrame:
        """A record older than the present one changes nothing."""
        known = key_join(new, old.select_seq(*self._key, pl.col(LAST).alias("_known")), self._key, "left", nulls_equal=True)
        return known.filter(pl.col("_known").is_null() | (pl.col(LAST) >= pl.col("_known"))).drop("_known")

    def _finish(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.drop(GONE, strict=False).rename({LAST: TIME})


def _in_order(records: pl.DataFrame) -> pl.DataFrame:
    """Records by time, and for equal times in the order of arrival: several tasks may have read one partition, and the later has the higher
    offset.

    Results of an earlier step have no place. Their contents decide, not the shards and the order that they come from.
    """
    places = [name for name in (OFFSET, PARTITION) if name in records.columns]
    order: list[str | pl.Expr] = [*places] or [contents_of([name for name in records.columns if name not in (TIME, OP)])]
    return records.sort(TIME, *order, maintain_order=True, nulls_last=False)


@operator_of.register
def _(node: GroupAggregate) -> Made:
    aggregates, arguments = aggregates_of(node)
    return single(GroupSpec(node.by, aggregates, None if node.ttl is None else microseconds(node.ttl)), arguments)
