"""Windows and their operators: each kind of window has its own, registered with `windowed`."""

from __future__ import annotations

from functools import singledispatch

from headrace.core.durations import microseconds
from headrace.operators.aggregates.arguments import aggregates_of
from headrace.operators.columns import ALL
from headrace.operators.contract import Made, Spec, operator_of, single
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.windows.emission import Emission, Trigger
from headrace.plan.aggregates.nodes import WindowAggregate
from headrace.plan.windows.emit import RETRACTING


@singledispatch
def windowed(window: object, emission: Emission) -> Spec:
    """The operator of a kind of window."""
    raise TypeError(f"{type(window).__name__} has no operator")


@operator_of.register
def _(node: WindowAggregate) -> Made:
    aggregates, arguments = aggregates_of(node)
    emit = node.emit
    early = None if emit.early is None else microseconds(emit.early)
    trigger = Trigger(early, emit.every, microseconds(emit.late), emit.mode if node.again else RETRACTING)
    kinds = tuple((name, dtype(typed.type)) for name, typed in arguments if typed.type is not None)
    emission = Emission(node.by or (ALL,), aggregates, microseconds(node.kept), trigger, arguments=kinds)
    return single(windowed(node.window, emission), arguments, microseconds(node.window.reach))
