"""Checked expressions as polars expressions, with results and faults equal to Spark's."""

from headrace.operators.expressions import (
    arithmetic,
    casts,
    choices,
    containers,
    dates,
    logic,
    matching,
    places,
    rounding,
    spans,
    texts,
    transcendentals,
    writing,
)
from headrace.operators.expressions.compiler import Compiled, compile  # noqa: A004
from headrace.operators.expressions.evaluation import REASON, evaluate

__all__ = ["REASON", "Compiled", "compile", "evaluate"]
del arithmetic, casts, choices, containers, dates, logic, matching, places, rounding, spans, texts, transcendentals, writing
