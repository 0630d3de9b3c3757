"""Rules of aggregate functions: the arguments of each, its constants with their bounds, and Spark's type of its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from headrace.core.columns.schema import data_type, type_name
from headrace.core.errors import PlanError
from headrace.plan.aggregates.nodes import Options
from headrace.plan.aggregates.user_aggregate import Aggregate
from headrace.plan.expressions import Typed
from headrace.plan.expressions.kinds import MAX_DIGITS
from headrace.plan.expressions.terms import Apply, Constant, Term

SAME_AS = {
    "mean": "avg", "first_value": "first", "last_value": "last", "any_value": "first", "count_if": "count", "stddev": "stddev_samp",
    "variance": "var_samp", "array_agg": "collect_list", "percentile_approx": "approx_percentile", "every": "bool_and",
    "some": "bool_or", "any": "bool_or",
}  # fmt: skip
# The number of values collected for each key and window, unless the call names another.
COLLECTED = 10_000
_MOST_COLLECTED = 1_000_000
_MOST_OF_TOP = 100_000
_MOST_TRACKED = 1_000_000
_FINEST_ERROR, _COARSEST_ERROR = 0.005, 0.39


@dataclass(frozen=True)
class Given:
    """A call as the user wrote it, its arguments checked."""

    function: str
    arguments: tuple[Typed, ...]
    text: str
    where: str | None
    own: Aggregate | None = None

    def refuse(self, fact: str, why: str | None = None, hint: str | None = None) -> PlanError:
        return PlanError(f"{self.text}{fact}", why=why, hint=hint, where=self.where)

    def counted(self, least: int, most: int) -> None:
        if not least <= len(self.arguments) <= most:
            takes = str(least) if least == most else f"{least} or {most}" if most == least + 1 else f"{least} to {most}"
            raise self.refuse(f" has {len(self.arguments)} arguments", hint=f"{self.function} takes {takes}")

    def kind(self, place: int) -> pa.DataType:
        argument = self.arguments[place]
        if argument.type is None:
            raise self.refuse(
                ": only Spark knows the type of its argument", why=argument.reason, hint="give it a type: cast(... as double)"
            )
        return argument.type

    def number(self, place: int, default: float, what: str, least: float, most: float) -> float:
        """A constant argument within its bounds."""
        if place >= len(self.arguments):
            return default
        value = _constant(self.arguments[place].term)
        if value is None:
            raise self.refuse(f": {what} is not a constant number", hint=f"write a number from {least:,} to {most:,}")
        if not least <= value <= most:
            raise self.refuse(f": {what} is {value:,}", hint=f"give a number from {least:,} to {most:,}")
        return value


@dataclass(frozen=True)
class Ruled:
    """The computation of a call: the function, the arguments evaluated for each record, the constants, the type of the result."""

    function: str
    arguments: tuple[Typed, ...]
    type: pa.DataType
    options: Options = ()


def _constant(term: Term) -> float | None:
    if isinstance(term, Apply) and term.operation == "cast" and len(term.arguments) == 1:
        return _constant(term.arguments[0])
    if not isinstance(term, Constant) or isinstance(term.value, bool) or not isinstance(term.value, (int, float, Decimal)):
        return None
    return term.value if isinstance(term.value, int) else float(term.value)


def _count(given: Given) -> Ruled:
    given.counted(0, 1)
    return Ruled("count", given.arguments, pa.int64())


def _total(given: Given) -> Ruled:
    given.counted(1, 1)
    kind, function = given.kind(0), given.function
    if pa.types.is_integer(kind):
        return Ruled(function, given.arguments, pa.int64() if function == "sum" else pa.float64())
    if pa.types.is_floating(kind):
        return Ruled(function, given.arguments, pa.float64())
    if pa.types.is_decimal(kind):
        more, finer = (10, 0) if function == "sum" else (4, 4)
        digits = pa.decimal128(min(MAX_DIGITS, kind.precision + more), min(MAX_DIGITS, kind.scale + finer))
        return Ruled(function, given.arguments, digits)
    raise _not_of(given, kind)


def _moment(given: Given) -> Ruled:
    given.counted(1, 1)
    kind = given.kind(0)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise _not_of(given, kind)
    return Ruled(given.function, given.arguments, pa.float64())


def _not_of(given: Given, kind: pa.DataType) -> PlanError:
    inner = given.arguments[0].expression.text
    return given.refuse(f": {given.function} of {type_name(kind)} is not computed", hint=f"{given.function}(cast({inner} as double))")


def _decision(given: Given) -> Ruled:
    given.counted(1, 1)
    if not pa.types.is_boolean(given.kind(0)):
        raise given.refuse(f": {type_name(given.kind(0))} is neither true nor false", hint="compare it with something")
    return Ruled(given.function, given.arguments, pa.bool_())


def _extreme(given: Given) -> Ruled:
    given.counted(1, 1)
    return Ruled(given.function, given.arguments, _ordered(given, 0))


def _by_time(given: Given) -> Ruled:
    given.counted(1, 2)
    if len(given.arguments) == 1:
        return Ruled(given.function, given.arguments, given.kind(0))
    term = given.arguments[1].term
    if not isinstance(term, Constant) or not isinstance(term.value, bool):
        raise given.refuse(": whether nulls are skipped is not a constant", hint="write true or false")
    return Ruled(given.function, given.arguments[:1], given.kind(0), (True,) if term.value else ())


def _by_column(given: Given) -> Ruled:
    given.counted(2, 3)
    _ordered(given, 1)
    kind = given.kind(0)
    if len(given.arguments) == 2:
        return Ruled(given.function, given.arguments, kind)
    count = int(given.number(2, 1, "how many", 1, _MOST_OF_TOP))
    return Ruled(f"several_{given.function}", given.arguments[:2], pa.list_(pa.field("element", kind)), (count,))


def _ordered(given: Given, place: int) -> pa.DataType:
    kind = given.kind(place)
    if pa.types.is_nested(kind):
        raise given.refuse(f": {type_name(kind)} has no order", hint="take a field of it")
    return kind


def _collect(given: Given) -> Ruled:
    given.counted(1, 2)
    kind = _without_maps(given, 0)
    bound = int(given.number(1, COLLECTED, "the most values", 1, _MOST_COLLECTED))
    return Ruled(given.function, given.arguments[:1], pa.list_(pa.field("element", kind)), (bound,))


def _without_maps(given: Given, place: int) -> pa.DataType:
    kind = given.kind(place)
    if pa.types.is_map(kind):
        raise given.refuse(": maps cannot be compared", why="two maps in another order are not told apart", hint="take map_keys(...)")
    return kind


def _count_distinct(given: Given) -> Ruled:
    given.counted(1, 16)
    for place in range(len(given.arguments)):
        _without_maps(given, place)
    return Ruled(given.function, given.arguments, pa.int64())


def _approx_count_distinct(given: Given) -> Ruled:
    given.counted(1, 2)
    _without_maps(given, 0)
    error = given.number(1, 0.05, "the error", 0, 1)
    if not _FINEST_ERROR <= error <= _COARSEST_ERROR:
        raise given.refuse(
            f": an error of {error:g}",
            why="its sketch would be too large to be useful",
            hint=f"give {_FINEST_ERROR} to {_COARSEST_ERROR}, or write count(distinct ...), which is exact",
        )
    return Ruled(given.function, given.arguments[:1], pa.int64(), (float(error),))


def _approx_percentile(given: Given) -> Ruled:
    given.counted(2, 3)
    kind = given.kind(0)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_temporal(kind)):
        raise given.refuse(f": {type_name(kind)} has no percentiles", hint="give numbers, dates or timestamps")
    accuracy = int(given.number(2, 10_000, "the accuracy", 1, 1_000_000))
    term = given.arguments[1].term
    several = isinstance(term, Apply) and term.operation == "array"
    shares = [_constant(part) for part in term.parts()] if several else [_constant(term)]
    known = [float(share) for share in shares if share is not None and 0 <= share <= 1]
    if len(known) < len(shares) or not shares:
        raise given.refuse(": the percentage is not a constant from 0 to 1", hint="write 0.99, or array(0.5, 0.99)")
    found = pa.list_(pa.field("element", kind)) if several else kind
    return Ruled(given.function, given.arguments[:1], found, (accuracy, *known))


def _approx_top_k(given: Given) -> Ruled:
    given.counted(1, 3)
    kind = _ordered(given, 0)
    tracked = int(given.number(2, 10_000, "the most items tracked", 1, _MOST_TRACKED))
    count = int(given.number(1, 5, "how many", 1, tracked))
    return Ruled(given.function, given.arguments[:1], _pairs(kind), (count, tracked))


def _heavy_hitters(given: Given) -> Ruled:
    given.counted(2, 2)
    kind = _ordered(given, 0)
    share = given.number(1, 0.01, "the share", 0.001, 1)
    return Ruled(given.function, given.arguments[:1], _pairs(kind), (float(share),))


def _pairs(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", pa.struct([pa.field("item", kind), pa.field("count", pa.int64())])))


def _own(given: Given) -> Ruled:
    assert given.own is not None
    for place in range(len(given.arguments)):
        given.kind(place)
    return Ruled("own", given.arguments, data_type(given.own.returns))


RULES: dict[str, Callable[[Given], Ruled]] = {
    "count": _count, "count_distinct": _count_distinct, "sum": _total, "avg": _total,
    "var_samp": _moment, "var_pop": _moment, "stddev_samp": _moment, "stddev_pop": _moment,
    "bool_and": _decision, "bool_or": _decision, "min": _extreme, "max": _extreme, "first": _by_time, "last": _by_time,
    "min_by": _by_column, "max_by": _by_column, "collect_list": _collect, "collect_set": _collect,
    "approx_count_distinct": _approx_count_distinct, "approx_percentile": _approx_percentile,
    "approx_top_k": _approx_top_k, "heavy_hitters": _heavy_hitters, "own": _own,
}  # fmt: skip
