"""Arrays, maps and structs: building them and reading from them."""

from __future__ import annotations

import polars as pl

from headrace.operators.expressions.dtypes import dtype
from headrace.operators.expressions.parts import CompiledTerm, Made, all_of, fault, operation, special
from headrace.plan.expressions import kinds
from headrace.plan.expressions.terms import Apply

_NOT_THERE = "no element at that index"


@special("struct")
def structure(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    named = [part.value.alias(str(name)) for part, name in zip(parts, term.options, strict=True)]
    return CompiledTerm(term, pl.struct(named), all_of(parts))


@special("array")
def array(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    return CompiledTerm(term, pl.concat_list([part.value for part in parts]), all_of(parts))


@special("map")
def mapping(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    pairs = [pl.struct(key.value.alias("key"), value.value.alias("value")) for key, value in zip(parts[::2], parts[1::2], strict=True)]
    return CompiledTerm(term, pl.concat_list(pairs).cast(dtype(term.kind or kinds.NULL)), all_of(parts))


@operation("field")
def field(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return parts[0].value.struct.field(str(term.options[0]))


@operation("size")
def size(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    value = parts[0].value
    return (value.map.len() if kinds.mapping(parts[0].term.kind or kinds.NULL) else value.list.len()).cast(pl.Int32)


@operation("array_contains")
def array_contains(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    """True when found, else null when an element is null, else false."""
    items, wanted = (part.value for part in parts)
    found = items.list.contains(wanted, nulls_equal=False)
    unsure = items.list.contains(pl.lit(None, dtype=dtype(parts[1].term.kind or kinds.NULL)), nulls_equal=True)
    given = items.is_not_null() & wanted.is_not_null()
    return pl.when(given & found.fill_null(False)).then(True).when(given & ~unsure).then(False).otherwise(None)


@operation("[]")
def item(term: Apply, parts: tuple[CompiledTerm, ...]) -> Made:
    # Spark uses only the low 32 bits of an index.
    items, index = parts[0].value, parts[1].value.cast(pl.Int32, wrap_numerical=True).cast(pl.Int64)
    length = items.list.len().cast(pl.Int64)
    misses = ((index < 0) | (index >= length)) & items.is_not_null()
    value = items.list.get(pl.when(~misses).then(index), null_on_oob=True)
    return pl.when(~misses).then(value), [fault(misses, _NOT_THERE, term)]


@operation("element_at", "try_element_at")
def element_at(term: Apply, parts: tuple[CompiledTerm, ...]) -> Made:
    """The first element is 1, the last -1; 0 is a fault even where others are not."""
    items, index = (part.value for part in parts)
    length = items.list.len().cast(pl.Int64)
    zero, beyond = (index == 0) & items.is_not_null(), index.abs() > length
    at = pl.when(index > 0).then(index - 1).otherwise(index)
    value = pl.when(~(zero | beyond)).then(items.list.get(at, null_on_oob=True))
    misses = zero if term.operation == "try_element_at" else zero | beyond
    return value, [fault(misses, _NOT_THERE, term)]


@operation("get")
def get(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    items, index = (part.value for part in parts)
    return pl.when(index >= 0).then(items.list.get(index, null_on_oob=True))


@operation("map value")
def map_value(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return parts[0].value.map.get(parts[1].value)


@operation("map_keys", "map_values")
def map_parts(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return parts[0].value.map.keys() if term.operation == "map_keys" else parts[0].value.map.values()


@operation("map_contains_key")
def map_contains_key(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return pl.when(parts[1].value.is_not_null()).then(parts[0].value.map.contains_key(parts[1].value))
