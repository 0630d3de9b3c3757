"""Which aggregates can take a record out again, and why the others cannot."""

from __future__ import annotations

from headrace.operators.aggregates import FUNCTIONS
from headrace.plan.aggregation import Call

REVOCABLE = ("count", "count(distinct ...)", "sum", "avg", "bool_and", "bool_or", "collect_list", "collect_set")
_SKETCHES = ("approx_count_distinct", "approx_percentile", "approx_top_k", "heavy_hitters")
_MOMENTS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")


def revocable(call: Call) -> bool:
    """Whether the aggregate can be computed over results that change."""
    return call.own.additive if call.own is not None else FUNCTIONS[call.function].invertible


def irrevocable(call: Call) -> str:
    """Why it cannot."""
    function = call.function.removeprefix("several_")
    if function in _SKETCHES:
        return f"the sketch of {function} does not know which values it is made of, so none can be taken out when it is corrected"
    if function in _MOMENTS:
        return f"the digits that {function} rounded off with a result are not there when it is taken out again"
    if call.own is not None:
        return "its class does not say that its state adds up (additive = True), so a result cannot be taken out when it is corrected"
    return f"a {function} that counted a result cannot take it out again when it is corrected"
