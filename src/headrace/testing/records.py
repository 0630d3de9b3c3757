"""Records that a test sends, as the columns of their stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from headrace.core.columns.moments import shown
from headrace.core.columns.schema import declared
from headrace.core.columns.values import UNFIT, column_of, fitted
from headrace.core.errors import SchemaError
from headrace.core.nearest import nearest
from headrace.plan.nodes import Source


def sent_table(source: Source, rows: Sequence[Mapping[str, Any]] | pa.Table) -> pa.Table:
    """Rows, or a table, in the columns of a stream; raises if one does not fit."""
    try:
        columns = _of_table(source, rows) if isinstance(rows, pa.Table) else _of_rows(source, rows)
        return pa.table(_filled(source, columns), source.columns)
    except UNFIT as error:
        raise SchemaError(
            f"a record does not fit stream {source.name!r}: {error}", hint=f"its columns are {declared(source.columns)}"
        ) from error


def removals_of(source: Source, key: Sequence[str]) -> Source:
    """A table's stream as removals are sent to it: they have a key, and need no other values."""
    return replace(source, columns=pa.schema([field if field.name in key else field.with_nullable(True) for field in source.columns]))


def _of_rows(source: Source, rows: Sequence[Mapping[str, Any]]) -> list[pa.Array]:
    if isinstance(rows, Mapping | str) or not isinstance(rows, Sequence):
        raise TypeError(f"{shown(rows)} is not a list of records")
    for row in rows:
        if not isinstance(row, Mapping):
            raise TypeError(f"{shown(row)} is not a dictionary of columns")
        _refuse_unknown(source, row)
    return [column_of([row.get(field.name) for row in rows], field) for field in source.columns]


def _of_table(source: Source, table: pa.Table) -> list[pa.Array]:
    _refuse_unknown(source, table.column_names)
    nothing = pa.nulls(table.num_rows)
    return [fitted(table.column(field.name) if field.name in table.column_names else nothing, field) for field in source.columns]


def _refuse_unknown(source: Source, names: Iterable[str]) -> None:
    unknown = next((name for name in names if name not in source.columns.names), None)
    if unknown is not None:
        near = nearest(unknown, source.columns.names)
        raise ValueError(f"it has no column {unknown!r}" + (f"; did you mean {near!r}?" if near else ""))


def _filled(source: Source, columns: list[pa.Array]) -> list[pa.Array]:
    """Columns, with a value wherever one is required."""
    for field, column in zip(source.columns, columns, strict=True):
        if column.null_count and not field.nullable:
            raise ValueError(f"column {field.name!r} is NOT NULL, and {column.null_count} records have no value for it")
    return columns
