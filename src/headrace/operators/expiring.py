"""Keyed state whose rows are over some time after their own: they are let go of, many at once."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from headrace.operators.keyed import GONE, KeyedState
from headrace.operators.memory import Memory
from headrace.operators.store import Store
from headrace.operators.time import BEGINNING, END


class ExpiringState(Memory[KeyedState]):
    """Rows by key that are over `ttl` microseconds after the time in the column `order`; never without `ttl`.

    To look for rows that are over reads every row, so it waits until an eighth of the time to live has gathered: `find` may still give
    rows that are over.
    """

    def __init__(self, prefix: str, keys: Sequence[str], order: str, ttl: int | None) -> None:
        super().__init__(KeyedState(prefix, keys))
        self._order = order
        self._ttl = ttl
        self._quiet_until = BEGINNING

    def restore(self, manifest: str | None, store: Store) -> None:
        super().restore(manifest, store)
        self._quiet_until = BEGINNING

    def find(self, keys: pl.DataFrame) -> pl.DataFrame | None:
        """The present rows of these keys, in no order; None if there are none."""
        return self._state.find(keys)

    def put(self, rows: pl.DataFrame, store: Store) -> None:
        """Write new versions of rows, each key once."""
        self._write(rows.with_columns(pl.lit(False).alias(GONE)), store)

    def _write(self, rows: pl.DataFrame, store: Store) -> None:
        self._state.put(rows, store)
        least = rows.get_column(self._order).min()
        if self._ttl is not None and isinstance(least, int):
            self._quiet_until = min(self._quiet_until, _gathered(least, self._ttl))

    def change(self, rows: pl.DataFrame, gone: pl.DataFrame, store: Store) -> None:
        """Write new versions of rows, and let go of others; each key once in both."""
        if gone.is_empty():
            self.put(rows, store)
            return
        marks = gone.select(rows.columns).with_columns(pl.lit(True).alias(GONE))
        self._write(pl.concat([rows.with_columns(pl.lit(False).alias(GONE)), marks]), store)

    def where(self, condition: pl.Expr) -> pl.DataFrame | None:
        """The present rows for which a condition is true; looks at every row."""
        return self._state.where(condition)

    def least(self, column: str, condition: pl.Expr) -> int | None:
        """The smallest value of a column among the present rows for which a condition is true; looks at every row."""
        return self._state.least(column, condition)

    def forget(self, moment: int, store: Store) -> None:
        """Let go of the rows that are over at a moment, if there can be enough of them."""
        if self._ttl is None or moment < self._quiet_until:
            return
        ends = pl.col(self._order) + self._ttl
        over = self._state.where(ends <= moment)
        least = self._state.least(self._order, ends > moment)
        self._quiet_until = END if least is None else _gathered(least, self._ttl)
        if over is not None:
            self._state.put(over.with_columns(pl.lit(True).alias(GONE)), store)


def _gathered(least: int, ttl: int) -> int:
    return least + ttl + ttl // 8
