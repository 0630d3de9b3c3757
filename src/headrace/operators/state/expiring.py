"""Keyed state whose rows expire some time after their own."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from headrace.operators.event_time.epoch_time import BEGINNING
from headrace.operators.frames import columns_of, with_constant
from headrace.operators.state.keyed import GONE, KeyedState, Located
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store


class ExpiringState(OneState[KeyedState]):
    """Rows by key that expire `ttl` microseconds after the time in the column `order`; never without `ttl`.

    `due` names other moments of a row, for `reached`. Rows are removed by `forget`: `find` may still return expired ones.
    """

    def __init__(self, prefix: str, keys: Sequence[str], order: str, ttl: int | None, **due: pl.Expr) -> None:
        super().__init__(KeyedState(prefix, keys, expiry=pl.col(order) + (ttl or 0), **due))
        self._keys = list(keys)
        self._ttl = ttl
        self._moment = BEGINNING
        self._changed = False

    def find(self, keys: pl.DataFrame) -> pl.DataFrame | None:
        """The present rows of these keys, in no order; None if there are none."""
        return self._state.find(keys)

    def locate(self, keys: pl.DataFrame) -> Located:
        """The present rows of these keys, in their order."""
        return self._state.locate(keys)

    def put(self, rows: pl.DataFrame, store: Store) -> None:
        """Write new versions of rows, each key once."""
        self.change(rows, rows.clear(), store)

    def change(self, rows: pl.DataFrame, gone: pl.DataFrame, store: Store) -> None:
        """Write new versions of rows, and remove others; each key once in both."""
        parts = [with_constant(rows, GONE, False, pl.Boolean)]
        if gone.height:
            parts.append(with_constant(columns_of(gone, rows.columns), GONE, True, pl.Boolean))
        over = self._expired()
        if over is not None:
            known = pl.concat([columns_of(rows, self._keys), columns_of(gone, self._keys)])
            over = over.join(known, on=self._keys, how="anti", nulls_equal=True)
            parts.append(with_constant(columns_of(over, rows.columns), GONE, True, pl.Boolean))
        self._changed = True
        self._state.put(pl.concat(parts), store)

    def all(self) -> pl.DataFrame | None:
        """Every present row, also expired ones that were not removed yet."""
        return self._state.all()

    def reached(self, kind: str, moment: int) -> pl.DataFrame | None:
        """The present rows whose moment of this kind is not after `moment`; reads no others."""
        return self._state.reached(kind, moment)

    def forget(self, moment: int, store: Store) -> None:
        """Remove the rows that have expired at a moment. A few wait for the changes of the next epoch: a write of their own costs more."""
        self._moment = moment
        over = self._expired()
        if over is not None and (not self._changed or 2 * over.height >= self.size.rows):
            self._state.put(with_constant(over, GONE, True, pl.Boolean), store)
        self._changed = False

    def _expired(self) -> pl.DataFrame | None:
        return None if self._ttl is None else self._state.reached("expiry", self._moment)
