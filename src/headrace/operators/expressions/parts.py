"""The pieces a compiled expression is made of: a value, and the faults that would have stopped Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from headrace.plan.expressions.terms import Apply, Constant, Term


@dataclass(frozen=True)
class Fault:
    """Rows for which Spark would raise: `flag` is true for them, false for all others, never null."""

    flag: pl.Expr
    reason: str

    def where(self, condition: pl.Expr) -> Fault:
        """The same fault on fewer rows; a null condition counts as false."""
        return Fault(self.flag & condition.fill_null(False), self.reason)


@dataclass(frozen=True)
class CompiledTerm:
    """A compiled term: its value never raises; on rows with a fault it has no meaning.

    `own` are the faults of the operation itself, `inherited` those of its arguments.
    """

    term: Term
    value: pl.Expr
    inherited: tuple[Fault, ...] = ()
    own: tuple[Fault, ...] = ()
    same: bool = False
    """Whether it is known to be the same for every row."""

    @property
    def faults(self) -> tuple[Fault, ...]:
        return (*self.inherited, *self.own)

    @property
    def present(self) -> pl.Expr | None:
        """Where the value is not null, or None when it never is."""
        return self.value.is_not_null() if self.term.nullable else None

    @property
    def constant(self) -> object:
        """The value of a constant, None for everything else."""
        return self.term.value if isinstance(self.term, Constant) else None


Made = tuple[pl.Expr, Sequence[Fault]]
Operation = Callable[[Apply, tuple[CompiledTerm, ...]], CompiledTerm]
OPERATIONS: dict[str, Operation] = {}


def fault(flag: pl.Expr, what: str, term: Term, hint: str = "") -> Fault:
    """A fault of `term`, on the rows where `flag` is true."""
    return Fault(flag.fill_null(False), f"{what} in {term.text}{hint}")


def in_turn(parts: Sequence[CompiledTerm]) -> tuple[Fault, ...]:
    """The faults of arguments that Spark evaluates one after another until one is null."""
    faults: list[Fault] = []
    seen: list[pl.Expr] = []
    for part in parts:
        faults += [_under(found, seen) for found in part.faults]
        if part.present is not None:
            seen.append(part.present)
    return tuple(faults)


def all_of(parts: Sequence[CompiledTerm]) -> tuple[Fault, ...]:
    """The faults of arguments that Spark evaluates whatever the others are."""
    return tuple(found for part in parts for found in part.faults)


def _under(found: Fault, conditions: Sequence[pl.Expr]) -> Fault:
    for condition in conditions:
        found = found.where(condition)
    return found


def special(*names: str) -> Callable[[Operation], Operation]:
    """Register an operation that orders the evaluation of its arguments itself."""

    def register(function: Operation) -> Operation:
        for name in names:
            OPERATIONS[name] = function
        return function

    return register


def operation(*names: str) -> Callable[[Callable[[Apply, tuple[CompiledTerm, ...]], pl.Expr | Made]], Operation]:
    """Register an operation that is null when an argument is, with the faults of its own that it returns."""

    def register(function: Callable[[Apply, tuple[CompiledTerm, ...]], pl.Expr | Made]) -> Operation:
        def operate(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
            made = function(term, parts)
            value, own = made if isinstance(made, tuple) else (made, ())
            return CompiledTerm(term, value, in_turn(parts), tuple(own))

        for name in names:
            OPERATIONS[name] = operate
        return operate

    return register
