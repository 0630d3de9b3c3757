"""The call site of a function: what a typing rule may build there, refuse, or leave to Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.core.errors import PlanError
from headrace.plan.expressions import kinds
from headrace.plan.expressions.casts import cast_reason, castable, total
from headrace.plan.expressions.syntax.nodes import Interval, Kind, Scalar, SyntaxNode
from headrace.plan.expressions.syntax.problems import type_error
from headrace.plan.expressions.terms import Apply, Constant, SparkTerm, Term


class LeftToSpark(Exception):
    """Raised by a rule: Spark evaluates this call, and the result has `kind` where that is known."""

    def __init__(self, reason: str, kind: Kind | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


@dataclass(frozen=True)
class Site:
    """One call in the user's text."""

    name: str
    node: SyntaxNode
    text: str
    where: str | None

    @property
    def written(self) -> str:
        return self.text[self.node.span.start : self.node.span.end]

    def apply(self, kind: Kind, *arguments: Term, options: Sequence[Scalar] = (), nullable: bool | None = None, name: str = "") -> Term:
        """This call on arguments that have the types it needs; a null argument gives null unless said otherwise."""
        may_be_null = any(argument.nullable for argument in arguments) if nullable is None else nullable
        return Apply(kind, may_be_null, self.written, name or OPERATIONS[self.name], arguments, tuple(options))

    def constant(self, value: Scalar, kind: Kind) -> Constant:
        return Constant(kind, value is None, self.written, value)

    def cast(self, term: Term, kind: Kind) -> Term:
        """The implicit cast Spark would add, or the term itself where it has the type."""
        if term.kind == kind or term.kind is None:
            return term
        if isinstance(term, Constant) and term.value is None:
            return Constant(kind, True, term.text, None)
        if isinstance(term, Constant) and kinds.wider_integer(kind, term.kind):
            return Constant(kind, False, term.text, term.value)
        if not castable(term.kind, kind):
            raise self.refuse(f"{term.text} is {_a(term.kind)}, not {_a(kind)}")
        reason = cast_reason(term.kind, kind)
        if reason is not None:
            return SparkTerm(kind, term.nullable, term.text, reason, (term,))
        return Apply(kind, term.nullable or not total(term.kind, kind), term.text, "cast", (term,))

    def wants(self, term: Term, kind: Kind) -> Term:
        """An argument of a function that takes `kind`: cast as Spark does implicitly, refused where it does not."""
        if term.kind is not None and not _assignable(term.kind, kind):
            raise self.refuse(f"{self.name} takes {_a(kind)}, and {term.text} is {_a(term.kind)}")
        return self.cast(term, kind)

    def literal(self, term: Term, what: str) -> Constant:
        """An argument that must be a constant for the call to be evaluated here."""
        if not isinstance(term, Constant):
            raise LeftToSpark(f"{self.name} with {what} that is not a constant is evaluated by Spark")
        return term

    def same(self, *terms: Term) -> tuple[Term, ...]:
        """The terms cast to the one type that can represent them all."""
        kind: Kind = kinds.NULL
        for term in terms:
            wider = kinds.common(kind, term.kind) if term.kind is not None else None
            if wider is None:
                raise self._differ(terms)
            kind = wider
        return tuple(self.cast(term, kind) for term in terms)

    def _differ(self, terms: tuple[Term, ...]) -> PlanError | LeftToSpark:
        if any(term.kind is None or kinds.nested(term.kind) for term in terms):
            return LeftToSpark(f"{self.name} of nested values is evaluated by Spark")
        types = ", ".join(kinds.named(term.kind) for term in terms if term.kind is not None)
        return self.refuse(f"{self.name} has no common type for {types}", "convert one of them: cast(... as double), to_timestamp('...')")

    def refuse(self, what: str, hint: str | None = None) -> PlanError:
        return type_error(self.text, self.node.span, what, self.where, hint)


def _a(kind: Kind) -> str:
    name = kinds.named(kind)
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _assignable(source: Kind, target: Kind) -> bool:
    if source in (target, kinds.NULL):
        return True
    if isinstance(source, Interval) or isinstance(target, Interval) or kinds.nested(source) or kinds.nested(target):
        return False
    if kinds.STRING in (source, target) or (kinds.number(source) and kinds.number(target)):
        return True
    moments = [kind for kind in (source, target) if kind == kinds.DATE or kinds.instant(kind)]
    return len(moments) == 2


Rule = Callable[[Site, tuple[Term, ...]], Term]
RULES: dict[str, Rule] = {}
OPERATIONS: dict[str, str] = {}


def rule(*names: str, arguments: tuple[int, int] | int | None = None) -> Callable[[Rule], Rule]:
    """Register how a function is typed, under its first name and others; `arguments` is their number, or (fewest, most)."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = _counted(function, arguments)
            OPERATIONS[name] = names[0]
        return function

    return register


def _counted(function: Rule, arguments: tuple[int, int] | int | None) -> Rule:
    if arguments is None:
        return function
    fewest, most = arguments if isinstance(arguments, tuple) else (arguments, arguments)

    def checked(site: Site, terms: tuple[Term, ...]) -> Term:
        if not fewest <= len(terms) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise site.refuse(f"{site.name} takes {wanted} argument{'' if wanted == '1' else 's'}, not {len(terms)}")
        return function(site, terms)

    return checked
