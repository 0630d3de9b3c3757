"""A changelog: records with an operation, so that emitted results can be retracted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from headrace.operators.aggregates.numbered_groups import distinct
from headrace.operators.frames import with_constant
from headrace.plan.steps import OPERATION

# The event time of a record.
TIME = "_time"
# The time of a retraction, where it differs from the record's own time.
CHANGED = "_changed"
# +1: the record is a live row from now on. -1: a record that was emitted before is retracted.
OP = "_op"
ADD, RETRACT = 1, -1


def added(frame: pl.DataFrame) -> pl.DataFrame:
    return with_constant(frame, OP, ADD, pl.Int8)


def retracted(frame: pl.DataFrame) -> pl.DataFrame:
    return with_constant(frame, OP, RETRACT, pl.Int8)


class NetChanges(NamedTuple):
    """The effect of an epoch on a table or a sink: rows, and for each whether it removes its key; None where none does."""

    rows: pl.DataFrame
    removed: pl.Series | None


def net_changes(frame: pl.DataFrame, key: Sequence[str]) -> NetChanges:
    """The net effect of an epoch on an output whose rows replace each other by a key; without one, every record is a fact."""
    if not key:
        return NetChanges(frame, None)
    rows = as_upserts(frame, key)
    return NetChanges(rows, rows.get_column(OP) < 0 if OP in rows.columns else None)


def as_upserts(frame: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """The net effect of a changelog of one epoch on a table: at most one record for each key, the newest, or its removal.

    Retractions precede the additions that replace them, so that the last record of a key is its live row.
    """
    return frame if distinct(frame, key) else frame.unique(subset=list(key), keep="last", maintain_order=True)


def as_facts(frame: pl.DataFrame, key: Sequence[str], watermark: int) -> pl.DataFrame:
    """A changelog of one epoch as facts with `op`: a record that is retracted and added again under its key is one update."""
    changes = frame.with_columns_seq(pl.col(OP).shift(1).over(key).alias("_previous"), pl.col(OP).shift(-1).over(key).alias("_next"))
    facts = changes.filter((pl.col(OP) == ADD) | pl.col("_next").is_null() | (pl.col("_next") == RETRACT))
    said = (
        pl.when(pl.col(OP) == RETRACT).then(pl.lit("delete"))
        .when(pl.col("_previous") == RETRACT).then(pl.lit("update"))
        .otherwise(pl.lit("insert"))
    )  # fmt: skip
    # A record may be retracted long after its own time, when every window of that time is closed: the retraction has the watermark's time
    # at least.
    gone_at = pl.max_horizontal(pl.col(TIME), pl.lit(watermark))
    if CHANGED in frame.columns:
        gone_at = pl.coalesce(pl.col(CHANGED), gone_at)
    moment = pl.when((pl.col(OP) == RETRACT) & pl.col(TIME).is_not_null()).then(gone_at).otherwise(pl.col(TIME))
    return facts.with_columns_seq(said.alias(OPERATION.name), moment.alias(TIME)).drop(OP, CHANGED, "_previous", "_next", strict=False)
