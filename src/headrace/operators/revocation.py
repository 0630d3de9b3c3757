"""Which aggregates can take a record out again, and why the others cannot."""

from __future__ import annotations

from headrace.operators.aggregates import FUNCTIONS
from headrace.plan.aggregation import Call


def revocable(call: Call) -> bool:
    """Whether the aggregate can be computed over results that change."""
    return call.own.additive if call.own is not None else FUNCTIONS[call.function].invertible


def irrevocable(call: Call) -> str:
    """Why it cannot."""
    if call.own is not None:
        return "its class does not say that its state adds up (additive = True), so a result cannot be taken out when it is corrected"
    return f"the sketch of {call.function} does not know which values it is made of, so none can be taken out when it is corrected"
