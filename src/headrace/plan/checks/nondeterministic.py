"""Nondeterministic expressions of a step, such as `now()` and `rand()`, whose value differs at each evaluation."""

from __future__ import annotations

from headrace.plan.expressions.unfused import MOVING
from headrace.plan.nodes import Node


def nondeterministic_expressions(node: Node) -> list[str]:
    """Those over its input records, as they were written."""
    return [typed.expression.text for typed in node.expressions if MOVING in typed.reason]


def nondeterministic_results(node: Node) -> list[str]:
    """Those over its own results, by their column: expressions over aggregates have no text of their own."""
    return [result.name for result in node.results if MOVING in result.expression.reason]
