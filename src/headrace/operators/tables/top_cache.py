"""The cache of a top: the best rows of each group and some more; all others are below the floor of their group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from headrace.operators.changes import added, retracted
from headrace.operators.columns import ALL
from headrace.operators.key_join import key_join

_PLACE, _FLOOR = "_place", "_floor "
# All rows, those below the floors too; None if there are none.
Everything = Callable[[], pl.DataFrame | None]


@dataclass(frozen=True)
class Order:
    """The order of rows: the `count` best of each `group` have the largest `score`, and among equal ones the smallest `row_key`."""

    row_key: tuple[str, ...]
    score: str
    group: tuple[str, ...]
    count: int
    rank: str = ""
    """The column for the place of a row in its group, from 1; empty where it is not asked for."""

    @property
    def columns(self) -> list[str]:
        return [self.score, *(name for name in self.row_key if name != self.score)]

    @property
    def kept(self) -> int:
        return 2 * self.count + 16


class TopCache:
    """Rows better than all rows that are not cached. A group without a floor has all its rows here."""

    def __init__(self, order: Order, rows: pl.DataFrame) -> None:
        self._order = order
        self._row_key, self._group = list(order.row_key), list(order.group)
        # All rows are one group.
        self._whole = order.group == (ALL,)
        self.rows = rows.clear()
        self._floors = self._as_floors(rows.clear())
        if rows.height:
            self._cut(self._placed(rows), self.rows, self._floors)

    @classmethod
    def found_again(cls, order: Order, rows: pl.DataFrame) -> TopCache:
        """Rows that were cached before: a group with as many rows as are emitted may have others below its floor; any other has none."""
        cache = cls(order, rows.clear())
        placed = cache._placed(rows)
        cache.rows = rows
        last = placed.filter(pl.col(_PLACE) == pl.col(_PLACE).max().over(order.group))
        cache._floors = cache._as_floors(last.filter(pl.col(_PLACE) >= order.count - 1))
        return cache

    @property
    def best(self) -> pl.DataFrame:
        """The rows that are emitted."""
        return self._best(self._placed(self.rows))

    def forget(self, over: pl.Expr) -> None:
        """Evict rows, and the floors of groups that have none left."""
        self.rows = self.rows.filter(~over)
        self._floors = self._floors.join(self.rows, on=self._group, how="semi", nulls_equal=True)

    def of(self, keys: pl.DataFrame) -> pl.DataFrame:
        """The rows here that have these keys."""
        # This way, the many are looked up among the few.
        mine = keys.select_seq(self._row_key).join(self.rows.select_seq(self._row_key), on=self._row_key, how="semi", nulls_equal=True)
        return self.rows.join(mine, on=self._row_key, how="semi", nulls_equal=True)

    def change(self, fresh: pl.DataFrame, keys: pl.DataFrame, touched: pl.DataFrame, everything: Everything) -> list[pl.DataFrame]:
        """Replace the rows with these keys by others, which are above their floors; returns the changes of the best rows.

        `touched` has every group that a row joins or leaves.
        """
        # Most of the time of a small change is the cost of calls, so none is made that has nothing to do.
        mine = self.rows if self._whole else self.rows.join(touched, on=self._group, how="semi", nulls_equal=True)
        others = self.rows.clear() if self._whole else self.rows.join(touched, on=self._group, how="anti", nulls_equal=True)
        before = self._best(self._placed(mine))
        stayed = mine.join(keys, on=self._row_key, how="anti", nulls_equal=True)
        rows, floors = self._refilled(pl.concat([stayed, fresh]), touched, everything)
        placed = self._placed(rows)
        self._cut(placed, others, floors)
        return self._emitted(before, self._best(placed), keys)

    def above(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows that are not below the floor of their group."""
        if self._floors.is_empty():
            return rows
        score, *row_key = self._order.columns
        if self._whole:
            # Few are left for the rest of it.
            rows = rows.filter(pl.col(score) >= self._floors.get_column(f"{_FLOOR}{score}").item())
        if rows.is_empty():
            return rows
        # From the last column to the first: a row is above if it is so in a column, or equal there and above in the next ones.
        above = pl.lit(True)
        for name in reversed(row_key):
            mine, floor = pl.col(name), pl.col(f"{_FLOOR}{name}")
            smaller = (mine < floor).fill_null(mine.is_null() & floor.is_not_null())
            above = smaller | (mine.eq_missing(floor) & above)
        mine, floor = pl.col(score), pl.col(f"{_FLOOR}{score}")
        above = floor.is_null() | (mine > floor) | ((mine == floor) & above)
        joined = key_join(rows, self._floors, self._group, "left", nulls_equal=True)
        return joined.filter(above).select_seq(rows.columns)

    def _refilled(self, rows: pl.DataFrame, touched: pl.DataFrame, everything: Everything) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Cached rows, and all rows of the groups that have too few there and others below their floor; these have no floor any more."""
        floors = self._floors
        if floors.is_empty() or (self._whole and rows.height >= self._order.count):
            return rows, floors
        behind = touched.join(floors, on=self._group, how="semi", nulls_equal=True)
        if behind.is_empty():
            return rows, floors
        counts = rows.group_by(self._group).agg(pl.len().alias("_rows"))
        short = key_join(behind, counts, self._group, "left", nulls_equal=True)
        short = short.filter(pl.col("_rows").fill_null(0) < self._order.count).select_seq(self._group)
        if short.is_empty():
            return rows, floors
        floors = floors.join(short, on=self._group, how="anti", nulls_equal=True)
        found = everything()
        if found is None:
            return rows, floors
        whole = found.select_seq(rows.columns).join(short, on=self._group, how="semi", nulls_equal=True)
        return pl.concat([rows.join(short, on=self._group, how="anti", nulls_equal=True), whole]), floors

    def _placed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows in their order, numbered in their group."""
        columns = self._order.columns
        ordered = rows.sort(columns, descending=[True] + [False] * (len(columns) - 1), nulls_last=False)
        numbers = pl.int_range(pl.len(), dtype=pl.Int64)
        return ordered.with_columns_seq((numbers if self._whole else numbers.over(self._group)).alias(_PLACE))

    def _best(self, placed: pl.DataFrame) -> pl.DataFrame:
        best = placed.filter(pl.col(_PLACE) < self._order.count)
        ranked = best.with_columns_seq((pl.col(_PLACE) + 1).alias(self._order.rank)) if self._order.rank else best
        return ranked.drop(_PLACE)

    def _cut(self, placed: pl.DataFrame, others: pl.DataFrame, floors: pl.DataFrame) -> None:
        """Trim each group's cache and record its floor."""
        kept = self._order.kept
        if self._whole and placed.height <= 2 * kept:
            self.rows, self._floors = placed.drop(_PLACE), floors
            return
        long = placed.filter(pl.col(_PLACE) == 2 * kept).select_seq(self._group)
        is_long = placed.join(long, on=self._group, how="semi", nulls_equal=True)
        cut = is_long.filter(pl.col(_PLACE) < kept)
        short = placed.join(long, on=self._group, how="anti", nulls_equal=True)
        self.rows = pl.concat([others, short.drop(_PLACE), cut.drop(_PLACE)])
        fresh = self._as_floors(cut.filter(pl.col(_PLACE) == kept - 1))
        self._floors = pl.concat([floors.join(long, on=self._group, how="anti", nulls_equal=True), fresh])

    def _as_floors(self, lowest: pl.DataFrame) -> pl.DataFrame:
        return lowest.select_seq(*self._group, *(pl.col(name).alias(f"{_FLOOR}{name}") for name in self._order.columns))

    def _emitted(self, before: pl.DataFrame, after: pl.DataFrame, keys: pl.DataFrame) -> list[pl.DataFrame]:
        # A row whose rank has changed is emitted again.
        unchanged = [*self._row_key, self._order.rank] if self._order.rank else self._row_key
        same = before.join(after, on=unchanged, how="semi", nulls_equal=True).join(keys, on=self._row_key, how="anti", nulls_equal=True)
        gone = before.join(same, on=self._row_key, how="anti", nulls_equal=True)
        come = after.join(same, on=self._row_key, how="anti", nulls_equal=True)
        return [said.drop(ALL) for said in (retracted(gone), added(come)) if said.height]


def groups_of_rows(parts: Sequence[pl.DataFrame], group: Sequence[str]) -> pl.DataFrame:
    """Each group that some rows are in, once."""
    return pl.concat([part.select_seq(group) for part in parts]).unique()
