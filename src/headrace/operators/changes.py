"""A changelog: records with an operation, so that what was said before can be taken back."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

# +1: the record holds from now on. -1: a record that was given out before does not hold any more.
OP = "_op"
ADD, RETRACT = 1, -1


def added(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.lit(ADD, pl.Int8).alias(OP))


def retracted(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.lit(RETRACT, pl.Int8).alias(OP))


def as_upserts(frame: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """The net effect of a changelog of one epoch on a table: at most one record a key, the newest, or its removal.

    Retractions stand before the additions that replace them, so the last record of a key is what holds.
    """
    return frame.unique(subset=list(key), keep="last", maintain_order=True)
