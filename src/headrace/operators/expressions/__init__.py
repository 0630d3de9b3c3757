"""Checked expressions as polars expressions, with results and faults equal to Spark's."""

from headrace.operators.expressions import casts, choices, containers, logic, places
from headrace.operators.expressions.compiler import Compiled, compile  # noqa: A004
from headrace.operators.expressions.evaluation import REASON, evaluate
from headrace.operators.expressions.numbers import arithmetic, rounding, transcendentals
from headrace.operators.expressions.text import matching, texts
from headrace.operators.expressions.times import dates, spans, writing

__all__ = ["REASON", "Compiled", "compile", "evaluate"]
del arithmetic, casts, choices, containers, dates, logic, matching, places, rounding, spans, texts, transcendentals, writing
