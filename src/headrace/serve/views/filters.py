"""The query string of a view: conditions on columns, order, and a page of the result."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.core.columns.schema import type_name
from headrace.core.nearest import choices
from headrace.operators.expressions.dtypes import dtype
from headrace.schema.values import Reader, text_reader
from headrace.serve.http.numbers import digits
from headrace.serve.http.problems import Problem

OPERATORS = ("eq", "ne", "lt", "le", "gt", "ge", "in", "prefix", "null")
# Parameters that are not columns; a column of such a name is queried with its operator: `limit.eq=3`.
RESERVED = ("order", "limit", "cursor", "epoch", "wait", "since", "format", "token")
_MOST = 10_000
_USUAL = 100


@dataclass(frozen=True)
class Condition:
    """A column compared with a value."""

    column: str
    operator: str
    value: Any
    kind: pa.DataType

    @property
    def expression(self) -> pl.Expr:
        column = pl.col(self.column)
        match self.operator:
            case "eq":
                return column.eq_missing(_constant(self.value, self.kind))
            case "ne":
                return column.ne_missing(_constant(self.value, self.kind))
            case "in":
                return column.is_in(pl.Series(self.value, dtype=dtype(self.kind)), nulls_equal=True)
            case "prefix":
                return column.str.starts_with(self.value)
            case "null":
                return column.is_null() if self.value else column.is_not_null()
        compared: pl.Expr = getattr(column, self.operator)(_constant(self.value, self.kind))
        return compared


@dataclass(frozen=True)
class Query:
    """Conditions, an order, and a page."""

    conditions: tuple[Condition, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    limit: int = _USUAL
    after: tuple[pl.Expr | None, ...] | None = None

    def equal(self) -> dict[str, Any]:
        """The columns that must equal a value."""
        return {condition.column: condition.value for condition in self.conditions if condition.operator == "eq"}

    def keep(self) -> pl.Expr | None:
        """All conditions as one."""
        return pl.all_horizontal([condition.expression for condition in self.conditions]) if self.conditions else None


def query_of(parameters: Iterable[tuple[str, str]], columns: pa.Schema, key: Sequence[str]) -> Query:
    """Read a query string. The order ends with the key, so that every row has its place."""
    conditions, order, limit, cursor = [], list[tuple[str, bool]](), _USUAL, None
    for name, text in parameters:
        if name == "order":
            order = [_direction(part, columns) for part in text.split(",") if part]
        elif name == "limit":
            limit = _limit(text)
        elif name == "cursor":
            cursor = text
        elif name not in RESERVED:
            conditions.append(_condition(name, text, columns))
    order += [(column, False) for column in key if column not in {name for name, _ in order}]
    after = None if cursor is None else _after(cursor, order, columns)
    return Query(tuple(conditions), tuple(order), limit, after)


def page_of(rows: pl.LazyFrame, query: Query) -> tuple[pl.DataFrame, bool]:
    """The rows of a query in its order, and whether there are more."""
    kept = query.keep()
    if kept is not None:
        rows = rows.filter(kept)
    if query.after is not None:
        rows = rows.filter(_behind(query.order, query.after))
    names = [name for name, _ in query.order]
    rows = rows.sort(names, descending=[down for _, down in query.order], nulls_last=True)
    found = rows.head(query.limit + 1).collect()
    return found.head(query.limit), found.height > query.limit


def cursor_of(rows: pl.DataFrame, query: Query) -> str:
    """Text from which `query_of` continues after the last of some rows. Moments are in it as they are stored: Python does not have all."""
    names = [name for name, _ in query.order]
    last = rows.tail(1).select(pl.col(name).to_physical() if rows.schema[name].is_temporal() else pl.col(name) for name in names)
    values = [_plain(value) for value in last.row(0)]
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def value_of(text: str, kind: pa.DataType, name: str) -> Any:
    """A value of a column as it is written in a URL; bytes are base64, as in answers."""
    try:
        return _reader(kind)(text)
    except ValueError as error:
        raise Problem(400, f"column {name!r} is {type_name(kind)}, and {text!r} is not: {error}") from error


@lru_cache(maxsize=256)
def _reader(kind: pa.DataType) -> Reader:
    """Reads a value of a type; made once, as most requests have one."""
    return partial(base64.b64decode, validate=True) if pa.types.is_binary(kind) else text_reader(pa.field("value", kind))


def _condition(name: str, text: str, columns: pa.Schema) -> Condition:
    column, dot, operator = name.rpartition(".")
    if not dot or operator not in OPERATORS:
        column, operator = name, "eq"
    if column not in columns.names:
        raise Problem(400, f"there is no column {column!r}", hint=choices(column, columns.names, "columns"))
    kind = columns.field(column).type
    if operator == "null":
        if text not in ("true", "false"):
            raise Problem(400, f"{name}={text!r} is neither true nor false")
        return Condition(column, operator, text == "true", kind)
    if operator == "prefix":
        if not pa.types.is_string(kind):
            raise Problem(400, f"column {column!r} is {type_name(kind)}: only text has a prefix")
        return Condition(column, operator, text, kind)
    if pa.types.is_nested(kind):
        raise Problem(400, f"column {column!r} is {type_name(kind)}, which is not compared")
    if operator == "in":
        return Condition(column, operator, [value_of(part, kind, column) for part in text.split(",")], kind)
    return Condition(column, operator, value_of(text, kind, column), kind)


def _direction(part: str, columns: pa.Schema) -> tuple[str, bool]:
    name, down = (part[1:], True) if part.startswith("-") else (part, False)
    if name not in columns.names:
        raise Problem(400, f"there is no column {name!r} to order by", hint=choices(name, columns.names, "columns"))
    if pa.types.is_nested(columns.field(name).type):
        raise Problem(400, f"column {name!r} is {type_name(columns.field(name).type)}, which has no order")
    return name, down


def _limit(text: str) -> int:
    if not digits(text) or not 1 <= int(text) <= _MOST:
        raise Problem(400, f"limit={text[:40]!r} is not a number from 1 to {_MOST:,}")
    return int(text)


def _after(text: str, order: Sequence[tuple[str, bool]], columns: pa.Schema) -> tuple[pl.Expr | None, ...]:
    try:
        values = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError) as error:
        raise Problem(400, "the cursor is not one of this server", hint="take it from next of the page before") from error
    if not isinstance(values, list) or len(values) != len(order):
        raise Problem(400, "the cursor belongs to another order", hint="ask for the first page again")
    kinds = [columns.field(name).type for name, _ in order]
    return tuple(None if value is None else _placed(str(value), kind) for value, kind in zip(values, kinds, strict=True))


def _placed(text: str, kind: pa.DataType) -> pl.Expr:
    """A value of a cursor."""
    if not pa.types.is_temporal(kind):
        return _constant(value_of(text, kind, "cursor"), kind)
    number = value_of(text, pa.int32() if pa.types.is_date(kind) else pa.int64(), "cursor")
    return pl.lit(pl.Series([number]).cast(dtype(kind))).first()


def _behind(order: Sequence[tuple[str, bool]], after: Sequence[pl.Expr | None]) -> pl.Expr:
    """Rows after a row: equal in the first columns and after it in the next. Nulls come last."""
    found = pl.lit(False)
    same = pl.lit(True)
    for (name, down), value in zip(order, after, strict=True):
        column = pl.col(name)
        behind = pl.lit(False) if value is None else (column < value if down else column > value).fill_null(True)
        found = found | (same & behind)
        same = same & (column.is_null() if value is None else column.eq_missing(value))
    return found


def _plain(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _constant(value: Any, kind: pa.DataType) -> pl.Expr:
    return pl.lit(pl.Series([value], dtype=dtype(kind))).first()
