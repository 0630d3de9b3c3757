"""Windows and their operators: each kind of window has its own, registered with `windowed`."""

from __future__ import annotations

from functools import singledispatch

from headrace.core.durations import microseconds
from headrace.operators.arguments import aggregates_of
from headrace.operators.contract import Made, Spec, operator_of
from headrace.operators.emission import Emission, Trigger
from headrace.operators.entry import ALL
from headrace.plan.aggregation import WindowAggregate
from headrace.plan.emit import RETRACTING


@singledispatch
def windowed(window: object, emission: Emission) -> Spec:
    """The operator of a kind of window."""
    raise TypeError(f"{type(window).__name__} has no operator")


@operator_of.register
def _(node: WindowAggregate) -> Made:
    aggregates, arguments = aggregates_of(node)
    emit = node.emit
    early = None if emit.early is None else microseconds(emit.early)
    trigger = Trigger(early, emit.every, microseconds(emit.late), emit.mode if emit.again else RETRACTING)
    return Made(windowed(node.window, Emission(node.by or (ALL,), aggregates, microseconds(node.kept), trigger)), arguments)
