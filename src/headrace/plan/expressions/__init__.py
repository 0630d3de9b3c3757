"""Spark SQL expressions: read, checked against a schema, and typed exactly as Spark types them, without a JVM."""

from headrace.plan.expressions import rules as _rules  # fills the table of functions before anything is checked
from headrace.plan.expressions.aggregate_names import AGGREGATES
from headrace.plan.expressions.aggregates import AggregateCall, SplitAggregate, parse_aggregate
from headrace.plan.expressions.check import FUSED, Typed, check
from headrace.plan.expressions.expression import Expression, parse
from headrace.plan.expressions.select import expand, parse_select

__all__ = [
    "AGGREGATES",
    "FUSED",
    "AggregateCall",
    "Expression",
    "SplitAggregate",
    "Typed",
    "check",
    "expand",
    "parse",
    "parse_aggregate",
    "parse_select",
]  # fmt: skip
del _rules
