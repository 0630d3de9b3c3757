"""Pairs of rows as results of a join: their columns, and null for a side that has no row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from headrace.operators.changes import OP, TIME
from headrace.operators.expressions.dtypes import dtype
from headrace.plan.joins.join import Sides

_OTHER = "_other"


@dataclass(frozen=True)
class Pairing:
    """The names and types of the columns of both sides, as they are in a result: `on` are those that must be equal."""

    on: tuple[str, ...]
    left: tuple[tuple[str, pl.DataType], ...]
    right: tuple[tuple[str, pl.DataType], ...]
    """Without those of `on`."""
    renamed: tuple[tuple[str, str], ...]
    """The right columns that have another name in a result."""

    @classmethod
    def of(cls, sides: Sides) -> Pairing:
        shown = sides.shown
        right = [(shown[field.name], dtype(field.type)) for field in sides.right.columns if field.name not in sides.right_on]
        return cls(
            sides.left_on,
            tuple((field.name, dtype(field.type)) for field in sides.left.columns),
            tuple(right),
            tuple((name, new) for name, new in shown.items() if name != new),
        )

    @property
    def columns(self) -> list[str]:
        return [*(name for name, _ in self.left), *(name for name, _ in self.right)]

    def left_rows(self, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """What came to the left port: the columns of the left side and the time, and no others."""
        return self._rows(frames, [name for name, _ in self.left], self.left)

    def right_rows(self, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """What came to the right port, under the names of a result."""
        names = dict(self.renamed)
        renamed = [frame.rename({old: new for old, new in names.items() if old in frame.columns}) for frame in frames]
        keys = tuple((name, kind) for name, kind in self.left if name in self.on)
        return self._rows(renamed, [*self.on, *(name for name, _ in self.right)], (*keys, *self.right))

    def pairs(self, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
        """Rows of the left side, each with the row of the right side in the same place; the time is the later one."""
        others = right.select_seq(*(name for name, _ in self.right), pl.col(TIME).alias(_OTHER))
        both = pl.concat([left, others], how="horizontal")
        return both.select_seq(*self.columns, pl.max_horizontal(TIME, _OTHER).alias(TIME))

    def left_alone(self, left: pl.DataFrame) -> pl.DataFrame:
        """Rows of the left side that have no match."""
        return left.select_seq(*(name for name, _ in self.left), *(pl.lit(None, kind).alias(name) for name, kind in self.right), TIME)

    def right_alone(self, right: pl.DataFrame) -> pl.DataFrame:
        """Rows of the right side that have no match: what must be equal stands under the left name all the same."""
        shown = [pl.col(name) if name in self.on else pl.lit(None, kind).alias(name) for name, kind in self.left]
        return right.select_seq(*shown, *(name for name, _ in self.right), TIME)

    def keyed(self) -> pl.Expr:
        """Whether a row has a key that can match: none of its columns is null."""
        return pl.all_horizontal(pl.col(name).is_not_null() for name in self.on)

    def _rows(self, frames: Sequence[pl.DataFrame], names: list[str], kinds: Sequence[tuple[str, pl.DataType]]) -> pl.DataFrame:
        if not frames:
            of = dict(kinds)
            return _empty(tuple((name, of[name]) for name in names))
        whole = pl.concat(frames, how="diagonal", rechunk=True)
        return whole[[*names, TIME, *([OP] if OP in whole.columns else [])]]


@cache
def _empty(columns: tuple[tuple[str, pl.DataType], ...]) -> pl.DataFrame:
    """Made once for the many epochs in which a port of a shard gets nothing."""
    return pl.DataFrame(schema={**dict(columns), TIME: pl.Int64})
