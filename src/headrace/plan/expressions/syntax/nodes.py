"""The syntax tree of an expression: frozen nodes that know their place in the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias

import pyarrow as pa


class Interval(Enum):
    """Spark's interval types, as far as arithmetic distinguishes them."""

    DAY = "interval day"
    DAY_TIME = "interval day to second"
    MONTH = "interval year to month"


Kind: TypeAlias = pa.DataType | Interval
Scalar: TypeAlias = bool | int | float | Decimal | str | bytes | None


@dataclass(frozen=True)
class Span:
    """From `start` up to but not including `end`, counted in characters of the text."""

    start: int
    end: int


@dataclass(frozen=True)
class SyntaxNode:
    """A part of an expression; two are equal when they mean the same, wherever they are."""

    span: Span = field(compare=False)

    def children(self) -> tuple[SyntaxNode, ...]:
        return ()

    def walk(self) -> Iterator[SyntaxNode]:
        yield self
        for child in self.children():
            yield from child.walk()


def substituted(node: SyntaxNode, instead: Callable[[SyntaxNode], SyntaxNode | None]) -> SyntaxNode:
    """An expression with other nodes in the places of those for which `instead` has one.

    A node that takes the span of the former one is shown as the user wrote that.
    """
    found = instead(node)
    if found is not None:
        return found

    def part(value: Any) -> Any:
        if isinstance(value, SyntaxNode):
            return substituted(value, instead)
        return tuple(map(part, value)) if isinstance(value, tuple) else value

    return replace(node, **{one.name: part(getattr(node, one.name)) for one in fields(node)})


@dataclass(frozen=True)
class ColumnName(SyntaxNode):
    """A column, and the fields of structs below it: `user.address.city`."""

    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.parts[0]


@dataclass(frozen=True)
class Literal(SyntaxNode):
    """A constant; dates are days, timestamps and day-time intervals microseconds, year-month intervals months."""

    value: Scalar
    kind: Kind


@dataclass(frozen=True)
class FunctionCall(SyntaxNode):
    """A function or an operator, under its name in lower case (`+`, `is null`, `upper`)."""

    name: str
    arguments: tuple[SyntaxNode, ...]
    distinct: bool = False
    filter: SyntaxNode | None = None
    ignores_nulls: bool = False

    def children(self) -> tuple[SyntaxNode, ...]:
        return self.arguments if self.filter is None else (*self.arguments, self.filter)


@dataclass(frozen=True)
class Member(SyntaxNode):
    """The field of a struct that is itself the result of an expression: `struct(a)['x'].city`."""

    operand: SyntaxNode
    name: str

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.operand,)


@dataclass(frozen=True)
class Cast(SyntaxNode):
    """`cast(operand as kind)`, or `try_cast` where `safe`."""

    operand: SyntaxNode
    kind: pa.DataType
    safe: bool = False

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.operand,)


@dataclass(frozen=True)
class Case(SyntaxNode):
    """`case when ... then ... else ... end`; the form with an operand has been rewritten to comparisons."""

    branches: tuple[tuple[SyntaxNode, SyntaxNode], ...]
    otherwise: SyntaxNode | None

    def children(self) -> tuple[SyntaxNode, ...]:
        parts = tuple(part for branch in self.branches for part in branch)
        return parts if self.otherwise is None else (*parts, self.otherwise)


@dataclass(frozen=True)
class NamedArgument(SyntaxNode):
    """An argument with a name, as in `struct(a as b)`: every argument of `struct` has one."""

    operand: SyntaxNode
    name: str

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.operand,)


@dataclass(frozen=True)
class Star(SyntaxNode):
    """`*`, less the columns after `except`; `below` is the struct whose fields are meant."""

    below: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Foreign(SyntaxNode):
    """Syntax that only Spark evaluates (lambdas, windows, subqueries), with the columns it reads."""

    what: str
    reads: tuple[tuple[str, ...], ...]
    gathers: bool = False
    """Whether it looks at many rows."""

    def children(self) -> tuple[SyntaxNode, ...]:
        return tuple(ColumnName(self.span, parts) for parts in self.reads)
