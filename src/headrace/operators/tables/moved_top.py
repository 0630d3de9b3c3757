"""The rows that a top of each shard had emitted before its key groups moved.

The best rows of a shard depend on which keys it has. After a move, the first epoch emits the difference, so that the next step has the
best rows of the new shards and no others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from headrace.operators.changes import added, retracted
from headrace.operators.contract import Exported, Size
from headrace.operators.state.keyed import GONE, KeyedState
from headrace.operators.state.store import Store

EMITTED = "emitted"


class Emitted:
    """Rows of the keys of one shard that the next step has; empty but between a move and the first epoch after it."""

    def __init__(self, row_key: Sequence[str]) -> None:
        self._row_key = list(row_key)
        self._rows = KeyedState(EMITTED, row_key)
        self.pending = False

    @property
    def size(self) -> Size:
        return self._rows.size

    def manifest(self) -> str:
        return json.dumps([self.pending, self._rows.manifest()])

    def restore(self, manifest: str | None, store: Store) -> None:
        self.pending, rows = json.loads(manifest) if manifest else (False, None)
        self._rows.restore(rows, store)

    def export(self) -> Exported:
        return self._rows.export()

    def absorb(self, moved: Exported, store: Store) -> None:
        self.pending = True
        self._rows.absorb(moved, store)

    @property
    def rows(self) -> pl.DataFrame | None:
        return self._rows.all()

    def settled(self, best: pl.DataFrame | None, changed: pl.DataFrame | None, gone: pl.Expr, store: Store) -> list[pl.DataFrame]:
        """The difference between the rows that the next step has and the best ones, of which `changed` have other contents.

        Rows that are `gone` have expired in both.
        """
        said, self.pending = self.rows, False
        if said is not None:
            self._rows.put(said.with_columns_seq(pl.lit(True).alias(GONE)), store)
        like = best if best is not None else said
        if like is None:
            return []
        before = (like.clear() if said is None else said.select_seq(like.columns)).filter(~gone)
        after = (like.clear() if best is None else best).filter(~gone)
        same = before.join(after, on=self._row_key, how="semi", nulls_equal=True)
        if changed is not None:
            same = same.join(changed, on=self._row_key, how="anti", nulls_equal=True)
        left, come = (rows.join(same, on=self._row_key, how="anti", nulls_equal=True) for rows in (before, after))
        return [rows for rows in (retracted(left), added(come)) if rows.height]
