"""Casts that Spark allows in ANSI mode, and those of them that are evaluated without it."""

from __future__ import annotations

import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP
from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, NULL, STRING, TIMESTAMP_NTZ
from headrace.plan.expressions.syntax.nodes import Interval, Kind

SAME_PLACES = 15
_FLOAT_TEXT = "the digits of a floating number in text depend on Spark's Java version"


def shortest_known(target: pa.Decimal128Type) -> bool:
    """Whether the digits of a double that count for a decimal are the same in every version of Java."""
    return bool(target.scale <= SAME_PLACES and target.precision - target.scale <= 16)


def castable(source: Kind, target: Kind) -> bool:
    """Whether Spark accepts the cast.

    >>> castable(kinds.INT, kinds.DATE)
    False
    """
    if source in (target, NULL):
        return True
    if isinstance(source, Interval) or isinstance(target, Interval):
        return isinstance(source, Interval) and isinstance(target, Interval) and Interval.MONTH not in (source, target)
    if kinds.nested(source) or kinds.nested(target):
        return target in (STRING,) or type(source) is type(target)
    if source == STRING:
        return True
    if BINARY in (source, target):
        return target in (STRING,)
    if BOOLEAN in (source, target):
        return target in (STRING,) or kinds.number(source) or kinds.number(target)
    if source == DATE:
        return target in (STRING,) or kinds.instant(target)
    if source == TIMESTAMP_NTZ:
        return target in (STRING, DATE, TIMESTAMP)
    if target in (DATE, TIMESTAMP_NTZ):
        return source in (TIMESTAMP,)
    return True


def total(source: Kind, target: Kind) -> bool:
    """Whether Spark treats the result of a cast as null only if its operand is."""
    if source == STRING:
        return target in (STRING, BINARY)
    if isinstance(target, pa.Decimal128Type):
        if not (isinstance(source, pa.Decimal128Type) or kinds.integer(source)):
            return False
        held = kinds.as_decimal(source)
        return bool(target.scale >= held.scale and target.precision - target.scale >= held.precision - held.scale)
    if kinds.integer(target):
        return kinds.integer(source) or source in (BOOLEAN,)
    return True


def cast_reason(source: Kind, target: Kind) -> str | None:
    """Why Spark evaluates this cast, or None where it is evaluated here."""
    if source in (target, NULL):
        return None
    if kinds.nested(source) or kinds.nested(target):
        return f"cast of {kinds.named(source)} to {kinds.named(target)} is evaluated by Spark"
    if kinds.floating(source) and target == STRING:
        return _FLOAT_TEXT
    if isinstance(target, pa.Decimal128Type) and (source == FLOAT or (source == DOUBLE and not shortest_known(target))):
        return _FLOAT_TEXT
    if source == BINARY:
        return "bytes need not be text, which only Spark keeps as it is"
    if TIMESTAMP in (source, target) and (kinds.floating(source) or kinds.decimal(source) or kinds.decimal(target) or target == FLOAT):
        return "Spark converts seconds with a fraction to a timestamp"
    if TIMESTAMP_NTZ in (source, target) and STRING in (source, target):
        return "Spark converts between timestamp_ntz and text"
    if isinstance(source, Interval) and target == STRING:
        return "Spark writes intervals as text"
    return None
