"""The place of a new node: behind which node it comes, how it is named, and the user's line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headrace.core.columns.names import Names, listed
from headrace.core.errors import PlanError
from headrace.plan.aggregates.user_aggregate import Aggregate
from headrace.plan.expressions import Expression, Typed, check, parse
from headrace.plan.nodes import Node, column


class StepNames(Protocol):
    """Gives each step of an app its own name, and knows the app's own aggregate functions."""

    @property
    def aggregates(self) -> Mapping[str, Aggregate]: ...

    def step_name(self, base: str, name: str | None = None) -> str: ...


@dataclass(frozen=True)
class StepPlace:
    """A step behind `node`, declared at the line `at`."""

    names: StepNames
    node: Node
    at: str | None

    @property
    def columns(self) -> pa.Schema:
        return self.node.columns

    def called(self, kind: str, name: str | None = None) -> str:
        """The name of the new step: the user's, or one of its kind."""
        return self.names.step_name(f"{self.node.name}.{kind}", name)

    def typed(self, expression: str | Expression) -> Typed:
        parsed = expression if isinstance(expression, Expression) else parse(expression, self.at)
        return check(parsed, self.columns)

    def columns_of(self, names: Names, role: str) -> tuple[str, ...]:
        """Names of columns, or one, all of which the node has, each once."""
        found = tuple(column(self.node, name, role).name for name in listed(names))
        twice = next((name for name in found if found.count(name) > 1), None)
        if twice is not None:
            raise self.refused(f"{role} names {twice!r} twice", hint="name it once")
        return found

    def refused(self, fact: str, *, hint: str, why: str = "") -> PlanError:
        return PlanError(fact, why=why, hint=hint, where=self.at)


def refuse_twice(columns: pa.Schema, at: str | None) -> None:
    """Two results with one name could not be distinguished."""
    twice = [name for name in columns.names if columns.names.count(name) > 1]
    if twice:
        raise PlanError(f"the result has two columns {twice[0]!r}", hint="give one of them another name", where=at)


def typed_field(name: str, typed: Typed, text: str, at: str | None) -> pa.Field:
    """The column that an expression makes, which the user wrote as `text`."""
    if typed.type is None:
        raise PlanError(
            f"{text!r}: only Spark knows its type",
            why=typed.reason,
            hint=f"give {name!r} one: cast({text} as string), or as any other type",
            where=at,
        )
    return pa.field(name, typed.type)
