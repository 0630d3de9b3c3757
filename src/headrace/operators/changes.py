"""A changelog: records with an operation, so that what was said before can be taken back."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from headrace.operators.dense import distinct
from headrace.plan.steps import OPERATION

# The event time of a record.
TIME = "_time"
# When a record that is taken back ceased to hold, where that is another time than its own.
CHANGED = "_changed"
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
    return frame if distinct(frame, key) else frame.unique(subset=list(key), keep="last", maintain_order=True)


def as_facts(frame: pl.DataFrame, key: Sequence[str], watermark: int) -> pl.DataFrame:
    """A changelog of one epoch as facts with `op`: a record taken back and given anew under its key is one update."""
    changes = frame.with_columns(pl.col(OP).shift(1).over(key).alias("_previous"), pl.col(OP).shift(-1).over(key).alias("_next"))
    facts = changes.filter((pl.col(OP) == ADD) | pl.col("_next").is_null() | (pl.col("_next") == RETRACT))
    said = (
        pl.when(pl.col(OP) == RETRACT).then(pl.lit("delete"))
        .when(pl.col("_previous") == RETRACT).then(pl.lit("update"))
        .otherwise(pl.lit("insert"))
    )  # fmt: skip
    # A record may go long after its own time, when every window of that is closed: it goes at the watermark at the earliest.
    gone_at = pl.max_horizontal(pl.col(TIME), pl.lit(watermark))
    if CHANGED in frame.columns:
        gone_at = pl.coalesce(pl.col(CHANGED), gone_at)
    moment = pl.when((pl.col(OP) == RETRACT) & pl.col(TIME).is_not_null()).then(gone_at).otherwise(pl.col(TIME))
    return facts.with_columns(said.alias(OPERATION.name), moment.alias(TIME)).drop(OP, CHANGED, "_previous", "_next", strict=False)
