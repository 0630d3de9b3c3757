"""Spark's types: predicates, common types, and the growth of decimals."""

from __future__ import annotations

import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP, type_name
from headrace.plan.expressions.syntax.nodes import Interval, Kind

BOOLEAN, STRING, BINARY, DATE, NULL = pa.bool_(), pa.string(), pa.binary(), pa.date32(), pa.null()
TINYINT, SMALLINT, INT, BIGINT = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
TIMESTAMP_NTZ = pa.timestamp("us")

_INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)
_NUMBERS = (*_INTEGERS, FLOAT, DOUBLE)
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
MAX_DIGITS = 38


def plain(kind: pa.DataType) -> pa.DataType:
    """The same Spark type in the one Arrow form used here (string, not large_string).

    >>> plain(pa.large_string())
    DataType(string)
    """
    types = pa.types
    if types.is_large_string(kind) or types.is_string_view(kind):
        return STRING
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return BINARY
    if types.is_timestamp(kind):
        return TIMESTAMP if kind.tz else TIMESTAMP_NTZ
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(pa.field("element", plain(kind.value_type), kind.value_field.nullable))
    if types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain(field.type), field.nullable) for field in kind])
    return kind


def named(kind: Kind) -> str:
    """Spark's name of a type, for messages."""
    if isinstance(kind, Interval):
        return kind.value
    return "void" if kind == NULL else type_name(kind)


def integer(kind: Kind) -> bool:
    return kind in _INTEGERS


def wider_integer(kind: Kind, other: Kind) -> bool:
    """Whether both are whole numbers and the first can represent all of the second."""
    return integer(kind) and integer(other) and _INTEGERS.index(kind) >= _INTEGERS.index(other)


def floating(kind: Kind) -> bool:
    return kind in (FLOAT, DOUBLE)


def decimal(kind: Kind) -> bool:
    return isinstance(kind, pa.Decimal128Type)


def number(kind: Kind) -> bool:
    return kind in _NUMBERS or decimal(kind)


def instant(kind: Kind) -> bool:
    """A timestamp with or without a time zone."""
    return isinstance(kind, pa.TimestampType)


def array(kind: Kind) -> bool:
    return isinstance(kind, pa.ListType)


def mapping(kind: Kind) -> bool:
    return isinstance(kind, pa.MapType)


def structure(kind: Kind) -> bool:
    return isinstance(kind, pa.StructType)


def nested(kind: Kind) -> bool:
    return array(kind) or mapping(kind) or structure(kind)


def as_decimal(kind: Kind) -> pa.Decimal128Type:
    """The decimal that can represent every value of an integer type."""
    return kind if isinstance(kind, pa.Decimal128Type) else pa.decimal128(_DIGITS[kind], 0)


def bounded(digits: int, scale: int) -> pa.Decimal128Type:
    """A decimal bounded to 38 digits; whole digits are kept, and at least six after the point where there were six."""
    if digits <= MAX_DIGITS:
        return pa.decimal128(digits, scale)
    return pa.decimal128(MAX_DIGITS, max(MAX_DIGITS - (digits - scale), min(scale, 6)))


def wider_decimal(left: pa.Decimal128Type, right: pa.Decimal128Type) -> pa.Decimal128Type:
    """The decimal that can represent both, bounded to 38 digits."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    # Beyond 38 digits a common type keeps the whole part, unlike arithmetic, which keeps up to six decimals.
    return pa.decimal128(min(whole + scale, MAX_DIGITS), max(0, min(scale, MAX_DIGITS - whole)))


def common(left: Kind, right: Kind) -> Kind | None:
    """The type that Spark casts both to, or None where there is none.

    >>> common(pa.int32(), pa.float32())
    DataType(double)
    """
    if right in (left, NULL):
        return left
    if left == NULL:
        return right
    if number(left) and number(right):
        return _common_number(left, right)
    if STRING in (left, right):
        return _common_with_text(right if left == STRING else left)
    if isinstance(left, Interval) and isinstance(right, Interval):
        return Interval.DAY_TIME if Interval.MONTH not in (left, right) else None
    moments = [kind for kind in (left, right) if kind == DATE or instant(kind)]
    if len(moments) == 2:
        return TIMESTAMP if TIMESTAMP in moments else TIMESTAMP_NTZ
    return None


def _common_with_text(other: Kind) -> Kind | None:
    if integer(other):
        return BIGINT
    if number(other):
        return DOUBLE
    return None if isinstance(other, Interval) or nested(other) else other


def _common_number(left: Kind, right: Kind) -> Kind:
    if floating(left) or floating(right):
        return FLOAT if left == right == FLOAT else DOUBLE
    if decimal(left) or decimal(right):
        return wider_decimal(as_decimal(left), as_decimal(right))
    return _INTEGERS[max(_INTEGERS.index(left), _INTEGERS.index(right))]
