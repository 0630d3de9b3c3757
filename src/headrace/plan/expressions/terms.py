"""A checked expression: every column found, every implicit cast spelled out, every part with its Spark type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.plan.expressions.syntax.nodes import Kind, Scalar


@dataclass(frozen=True)
class Term:
    """A checked part: its type (None where only Spark knows it), whether it may be null, and its text."""

    kind: Kind | None
    nullable: bool
    text: str = field(compare=False)

    def parts(self) -> tuple[Term, ...]:
        return ()

    def walk(self) -> Iterator[Term]:
        yield self
        for part in self.parts():
            yield from part.walk()


@dataclass(frozen=True)
class Field(Term):
    """A column under its exact name."""

    name: str


@dataclass(frozen=True)
class Constant(Term):
    """A value known now."""

    value: Scalar


@dataclass(frozen=True)
class Apply(Term):
    """An operation on checked arguments; `options` are what the operation needs in addition to values (a pattern, a unit)."""

    operation: str
    arguments: tuple[Term, ...]
    options: tuple[Scalar, ...] = ()

    def parts(self) -> tuple[Term, ...]:
        return self.arguments


@dataclass(frozen=True)
class SparkTerm(Term):
    """A part that only Spark evaluates, with the reason."""

    reason: str
    arguments: tuple[Term, ...] = ()

    def parts(self) -> tuple[Term, ...]:
        return self.arguments
