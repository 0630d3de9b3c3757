"""`evaluate`: many expressions over one frame at once, with good and bad rows separated."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from headrace.operators.expressions.compiler import compile  # noqa: A004
from headrace.plan.expressions.check import Typed

REASON = "_reason"


def evaluate(frame: pl.DataFrame, columns: Mapping[str, Typed]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(good, bad): the named results for rows without a fault, and the input rows with one, with the column `_reason`.

    Together they have as many rows as the input, each in its order.
    """
    compiled = {name: compile(typed) for name, typed in columns.items()}
    values = [part.value.alias(name) for name, part in compiled.items()]
    errors = [part.error for part in compiled.values() if part.error is not None]
    if not errors:
        return _spread(frame, frame.lazy().select_seq(values).collect(engine="in-memory")), _none_of(frame)
    result = _spread(frame, frame.lazy().select_seq(*values, pl.coalesce(errors).alias(REASON)).collect(engine="in-memory"))
    reasons = result[REASON]
    good = result.drop(REASON)
    if reasons.null_count() == len(reasons):
        return good, _none_of(frame)
    failed = reasons.is_not_null()
    return good.filter(~failed), frame.filter(failed).with_columns_seq(reasons.filter(failed).alias(REASON))


def _spread(frame: pl.DataFrame, result: pl.DataFrame) -> pl.DataFrame:
    """A result of constants only has one row: it is repeated for every input row."""
    if result.height == frame.height:
        return result
    return result.clear() if frame.height == 0 else pl.concat([result] * frame.height)


def _none_of(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.clear().with_columns_seq(pl.lit(None, dtype=pl.String).alias(REASON))
