"""Which expressions of a step have another value each time they are evaluated, as `now()` and `rand()` have."""

from __future__ import annotations

from headrace.plan.expressions.unfused import MOVING
from headrace.plan.nodes import Node


def moving_expressions(node: Node) -> list[str]:
    """Those of the records that come in, as they were written."""
    return [typed.expression.text for typed in node.expressions if MOVING in typed.reason]


def moving_results(node: Node) -> list[str]:
    """Those of its own results, by the column they make: what is made of aggregates has no text of its own."""
    return [result.name for result in node.results if MOVING in result.expression.reason]
