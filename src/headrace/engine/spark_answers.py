"""Expressions that Spark has evaluated: its answers are in columns of their own, null where the evaluation raised an error."""

from __future__ import annotations

import polars as pl

from headrace.operators.expressions import Compiled
from headrace.operators.expressions import compile as compiled_form
from headrace.operators.expressions.dtypes import dtype
from headrace.plan.expressions import Typed

# Spark's answer is a struct with one field, so that a null answer differs from no answer.
ANSWER = "_spark "
VALUE = "value"


def answer_name(typed: Typed) -> str:
    """The column with Spark's answer to an expression."""
    return f"{ANSWER}{typed.expression.text}"


def ready(typed: Typed) -> Compiled:
    """A fused expression as polars evaluates it; any other as Spark's answer to it."""
    if typed.fused:
        return compiled_form(typed)
    answer = pl.col(answer_name(typed))
    value = answer.struct.field(VALUE)
    reason = pl.lit(f"Spark raised an error in {typed.expression.text}")
    return Compiled(value if typed.type is None else value.cast(dtype(typed.type)), pl.when(answer.is_null()).then(reason))
