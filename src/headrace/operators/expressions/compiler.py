"""`compile`: a checked expression as polars expressions, one for the value and one for the error that would have stopped Spark."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from headrace.core.errors import PlanError
from headrace.operators.expressions.dtypes import dtype, literal
from headrace.operators.expressions.parts import OPERATIONS, CompiledTerm, Fault
from headrace.plan.expressions.check import Typed
from headrace.plan.expressions.terms import Apply, Constant, Field, Term

# The types whose values Python has exactly.
_PLAIN = (pl.Boolean(), pl.Int8(), pl.Int16(), pl.Int32(), pl.Int64(), pl.Float32(), pl.Float64(), pl.String())


@dataclass(frozen=True)
class Compiled:
    """`value` never raises; `error` is the reason as text for rows where Spark would have raised, null for all others."""

    value: pl.Expr
    error: pl.Expr | None


def compile(typed: Typed) -> Compiled:  # noqa: A001  the word for it
    """The polars form of a fused expression.

    >>> from headrace.plan.expressions import check, parse
    >>> frame = pl.DataFrame({"a": [1, 2147483647]}, schema={"a": pl.Int32})
    >>> compiled = compile(check(parse("a + 1"), frame.to_arrow().schema))
    >>> frame.select(compiled.error.alias("error"))["error"].to_list()
    [None, 'overflow in a + 1']
    """
    if not typed.fused or typed.type is None:
        raise PlanError(f"{typed.expression.text!r} is evaluated by Spark", why=typed.reason, where=typed.expression.where)
    part = _part(typed.term)
    kind = typed.term.kind
    value = part.value if kind is None else part.value.cast(dtype(kind))
    return Compiled(value, _reason(part.faults))


def _part(term: Term) -> CompiledTerm:
    if isinstance(term, Field):
        return CompiledTerm(term, pl.col(term.name))
    if isinstance(term, Constant) and term.kind is not None:
        return CompiledTerm(term, literal(term.value, term.kind), same=True)
    if isinstance(term, Apply):
        parts = tuple(_part(argument) for argument in term.arguments)
        made = OPERATIONS[term.operation](term, parts)
        return _computed(made) if all(part.same for part in parts) else made
    raise TypeError(f"{term} cannot be compiled")


def _computed(made: CompiledTerm) -> CompiledTerm:
    """The value of an operation on constants, computed now and not in every batch; one that raises does so where it is evaluated."""
    kind = None if made.term.kind is None else dtype(made.term.kind)
    if kind not in _PLAIN:
        return made
    value, *faults = pl.select(made.value.alias("value"), *(one.flag.alias(f"{number}") for number, one in enumerate(made.faults))).row(0)
    return made if any(faults) else CompiledTerm(made.term, pl.lit(value, kind), same=True)


def _reason(faults: tuple[Fault, ...]) -> pl.Expr | None:
    if not faults:
        return None
    return pl.coalesce([pl.when(fault.flag).then(pl.lit(fault.reason)) for fault in faults])
