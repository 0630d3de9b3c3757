"""Retraction of records from aggregates: which can remove a record again, and why the others cannot."""

from __future__ import annotations

from headrace.operators.aggregates.partials import FUNCTIONS
from headrace.plan.aggregates.nodes import TypedCall


def revocable(call: TypedCall) -> bool:
    """Whether the aggregate can be computed over results that change."""
    return call.own.additive if call.own is not None else FUNCTIONS[call.function].invertible


def irrevocable(call: TypedCall) -> str:
    """Why it cannot."""
    if call.own is not None:
        return "its class does not declare that its state adds up (additive = True), so a result cannot be removed when it is corrected"
    return f"the sketch of {call.function} does not know its values, so none can be removed when it is corrected"
