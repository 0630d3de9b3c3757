"""Windows and their operators: each kind of window has its own, registered with `windowed`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from headrace.core.durations import microseconds
from headrace.operators.aggregate import Aggregate
from headrace.operators.arguments import aggregates_of
from headrace.operators.contract import Made, Spec, operator_of
from headrace.operators.entry import ALL
from headrace.plan.aggregation import WindowAggregate


@dataclass(frozen=True)
class Contents:
    """What is computed in each window, whatever its kind: aggregates by key, corrected until `until` microseconds after its end."""

    by: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    until: int


@singledispatch
def windowed(window: object, contents: Contents) -> Spec:
    """The operator of a kind of window."""
    raise TypeError(f"{type(window).__name__} has no operator")


@operator_of.register
def _(node: WindowAggregate) -> Made:
    aggregates, arguments = aggregates_of(node)
    return Made(windowed(node.window, Contents(node.by or (ALL,), aggregates, microseconds(node.kept))), arguments)
