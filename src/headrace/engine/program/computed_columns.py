"""Computed columns of a batch, and the records for which an expression fails."""

from __future__ import annotations

import polars as pl

from headrace.operators.expressions import REASON, Compiled
from headrace.operators.frames import columns_of


def computed(frame: pl.DataFrame, columns: list[tuple[str, Compiled]], kept: list[str]) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """The kept columns and new ones, and the records that an expression could not be computed for."""
    values = [compiled.value.alias(name) for name, compiled in columns]
    errors = [compiled.error for _, compiled in columns if compiled.error is not None]
    if not columns:
        return columns_of(frame, kept), None
    if not errors:
        return frame.select_seq(*kept, *values), None
    result = frame.select_seq(*kept, *values, pl.coalesce(errors).alias(REASON))
    failed = result.get_column(REASON).is_not_null()
    if not failed.any():
        return columns_of(result, result.columns[:-1]), None
    bad = frame.filter(failed).with_columns_seq(result.get_column(REASON).filter(failed))
    return result.filter(~failed).drop(REASON), bad
