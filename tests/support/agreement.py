"""Agreement of our evaluation of an expression with Spark's, in every bit, and the places where they differ."""

import struct
from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.operators.expressions import compile  # noqa: A004
from headrace.plan.expressions import Typed
from tests.support.oracle import Verdict

SHOWN = 5


def disagreements(typed: Typed, frame: pl.DataFrame, verdict: Verdict) -> list[str]:
    """Nothing where types, values and raising rows are all equal, otherwise the first differences in words."""
    values, failed = ours(typed, frame)
    wanted = _plain(verdict.values.type)
    if typed.type != wanted and typed.type is not None and _plain(typed.type) != wanted:
        return [f"type {typed.type}, Spark has {wanted}"]
    found = list(_differing(_items(values), failed, _items(verdict.values), verdict.raised.to_pylist()))
    said = [f"{_row(typed, frame, row)}: {mine}, Spark {theirs}" for row, mine, theirs in found[:SHOWN]]
    return [*said, f"... {len(found)} rows of {frame.height}"] if len(found) > SHOWN else said


def ours(typed: Typed, frame: pl.DataFrame) -> tuple[pa.Array, list[bool]]:
    """Our values, and the rows we would send to the dead letters."""
    compiled = compile(typed)
    error = pl.lit(None, dtype=pl.String) if compiled.error is None else compiled.error
    result = frame.lazy().select(compiled.value.alias("value"), error.alias("error"), pl.lit(0).alias("row")).collect(engine="in-memory")
    if result.height == 1 and frame.height != 1:
        result = pl.concat([result] * frame.height)
    return result["value"].to_arrow(), result["error"].is_not_null().to_list()


def _differing(mine: list[Any], failed: list[bool], theirs: list[Any], raised: list[bool]) -> Iterator[tuple[int, str, str]]:
    for row, (one, bad, two, raises) in enumerate(zip(mine, failed, theirs, raised, strict=True)):
        if bad != raises:
            yield row, "a fault" if bad else repr(one), "raises" if raises else repr(two)
        elif not bad and _bits(one) != _bits(two):
            yield row, repr(one), repr(two)


def _items(values: pa.Array) -> list[Any]:
    """Python values; moments as their numbers, because Python's calendar ends at the year 9999."""
    if pa.types.is_date(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
        values = values.view(pa.int64())
    return list(values.to_pylist())


def _bits(value: Any) -> Any:
    """Equal exactly when every bit is; NaN is one value, zero and negative zero are two."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("<d", value)  # noqa: PLR0124  only NaN differs from itself
    if isinstance(value, dict):
        return [(key, _bits(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [_bits(item) for item in value]
    return value


def _row(typed: Typed, frame: pl.DataFrame, row: int) -> str:
    names = {name.lower() for name in typed.expression.columns}
    one = frame.slice(row, 1)
    return ", ".join(f"{name}={_items(one[name].to_arrow())[0]!r}" for name in frame.columns if name.lower() in names) or "constant"


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without the nullability and the large forms that two writers of Arrow choose differently."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    return kind
