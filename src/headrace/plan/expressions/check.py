"""`check`: an expression against a schema, with Spark's result type, and whether it can run without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.core.nearest import nearest
from headrace.plan.expressions import kinds
from headrace.plan.expressions.aggregate_names import AGGREGATES
from headrace.plan.expressions.expression import Expression
from headrace.plan.expressions.functions import FUNCTIONS
from headrace.plan.expressions.optimizer import NeverFolds, optimized
from headrace.plan.expressions.rules.collections import field_of
from headrace.plan.expressions.rules.places import OWN
from headrace.plan.expressions.site import RULES, LeftToSpark, Rule, Site
from headrace.plan.expressions.syntax.nodes import (
    Case,
    Cast,
    ColumnName,
    Foreign,
    FunctionCall,
    Interval,
    Kind,
    Literal,
    Member,
    NamedArgument,
    SyntaxNode,
)
from headrace.plan.expressions.syntax.problems import unknown_name
from headrace.plan.expressions.terms import Apply, Constant, Field, SparkTerm, Term
from headrace.plan.expressions.unfused import UNFUSED

# Spark treats these as functions where there is no such column.
_WORDS_OF_THE_MOMENT = {
    (word,) for word in ("current_date", "current_timestamp", "current_user", "current_time", "localtimestamp", "session_user", "user")
}
_OF_MANY = "aggregates belong in agg(...); with_previous(...), dedup(...) and process(...) know the records of a key before"
FUSED = frozenset(RULES) - OWN | {"cast", "try_cast"}


@dataclass(frozen=True)
class Typed:
    """An expression whose columns and types are known.

    `type` is the Arrow form of Spark's result type, None where only Spark can tell; `fused` when it is evaluated without
    Spark, otherwise `reason` says why not.
    """

    expression: Expression
    type: pa.DataType | None
    nullable: bool
    fused: bool
    reason: str
    term: Term

    @property
    def words(self) -> str:
        """The text on one line."""
        return " ".join(self.expression.text.split())


def check(expression: Expression, schema: pa.Schema, computed: Sequence[pa.Field] = ()) -> Typed:
    """Resolve names as Spark does (ignoring case), infer the type, and refuse what Spark would refuse.

    Columns that are `computed` from parts of the expression are not the user's, and no hint names them.

    >>> from headrace.plan.expressions import parse
    >>> typed = check(parse("amount / 2"), pa.schema([("amount", pa.int32())]))
    >>> typed.type, typed.fused
    (DataType(double), True)
    """
    term = _Checker(expression, schema, computed).term(expression.root)
    try:
        term = optimized(term)
    except NeverFolds as problem:
        raise PlanError(str(problem), hint="write the sum of the constants yourself", where=expression.where) from problem
    reason = next((part.reason for part in term.walk() if isinstance(part, SparkTerm) and part.reason), "")
    if not reason and term.kind == Interval.MONTH:
        reason = "a result of months is left to Spark"
    if reason:
        _refuse_own(term, expression, reason)
    return Typed(expression, _arrow(term.kind), term.nullable, not reason, reason, term)


def _refuse_own(term: Term, expression: Expression, reason: str) -> None:
    """Spark evaluates an expression as a whole, and does not know functions of ours."""
    own = next((part.operation for part in term.walk() if isinstance(part, Apply) and part.operation in OWN), None)
    if own is not None:
        raise PlanError(
            f"{own}(...) is a function of Headrace, and Spark must evaluate {expression.text!r}",
            why=reason,
            hint="compute one of the two into a column first: with_columns(...)",
            where=expression.where,
        )


def _arrow(kind: Kind | None) -> pa.DataType | None:
    if isinstance(kind, Interval):
        return None if kind is Interval.MONTH else pa.duration("us")
    return kind


def _field(name: str, site: Site, terms: tuple[Term, ...]) -> Term:
    return field_of(site, terms[0], name)


class _Checker:
    def __init__(self, expression: Expression, schema: pa.Schema, computed: Sequence[pa.Field]) -> None:
        self._text = expression.text
        self._where = expression.where
        self._columns = schema.names
        self._schema = [*schema, *computed]

    def term(self, node: SyntaxNode) -> Term:
        if isinstance(node, ColumnName):
            return self._column(node)
        if isinstance(node, Literal):
            return Constant(node.kind, node.value is None, self._written(node), node.value)
        if isinstance(node, Cast):
            return self._cast(node)
        if isinstance(node, Member):
            return self._ruled(node, partial(_field, node.name), [self.term(node.operand)])
        if isinstance(node, Case):
            parts = [self.term(part) for part in node.children()]
            if node.otherwise is None:
                parts.append(Constant(kinds.NULL, True, "null", None))
            return self._call("case", node, parts)
        if isinstance(node, FunctionCall):
            return self._call(node.name, node, self._arguments(node))
        if isinstance(node, Foreign) and node.gathers:
            raise self._site(node, "").refuse(f"{node.what} reads many rows, and this is evaluated for each row", _OF_MANY)
        if isinstance(node, Foreign):
            for part in node.children():
                self.term(part)
            return SparkTerm(None, True, self._written(node), f"{node.what} is evaluated by Spark")
        raise self._site(node, "").refuse("this cannot be part of an expression", '"*" belongs in select or count(*)')

    def _arguments(self, node: FunctionCall) -> list[Term]:
        if node.name != "struct":
            return [self.term(argument) for argument in node.arguments]
        parts: list[Term] = []
        for argument in node.arguments:
            assert isinstance(argument, NamedArgument)
            parts += [Constant(kinds.STRING, False, argument.name, argument.name), self.term(argument.operand)]
        return parts

    def _column(self, node: ColumnName) -> Term:
        found = [field for field in self._schema if field.name.lower() == node.name.lower()]
        if len(found) > 1:
            names = ", ".join(field.name for field in found)
            raise self._site(node, "").refuse(
                f"column {node.name!r} could be any of {names}", "Spark does not distinguish upper from lower case"
            )
        if not found and tuple(name.lower() for name in node.parts) in _WORDS_OF_THE_MOMENT:
            return self._call(node.name.lower(), node, [])
        if not found:
            fact, hint = unknown_name("column", node.name, self._columns)
            raise self._site(node, "").refuse(fact, hint)
        field = found[0]
        term: Term = Field(kinds.plain(field.type), field.nullable, self._written(node) if len(node.parts) == 1 else node.name, field.name)
        for name in node.parts[1:]:
            term = self._ruled(node, partial(_field, name), [term])
        return term

    def _cast(self, node: Cast) -> Term:
        operand = self.term(node.operand)
        site = self._site(node, "try_cast" if node.safe else "cast")
        term = site.cast(operand, node.kind) if operand.kind is not None else SparkTerm(node.kind, True, site.written, "", (operand,))
        if not node.safe or not isinstance(term, Apply) or term is operand:
            return term
        return Apply(node.kind, True, site.written, "try", (term,))

    def _call(self, name: str, node: SyntaxNode, terms: list[Term]) -> Term:
        if name in AGGREGATES:
            raise self._site(node, name).refuse(
                f"{name}(...) combines many rows, and this is evaluated for each row", "aggregates belong in agg(...)"
            )
        if name in UNFUSED:
            kind, reason = UNFUSED[name]
            return SparkTerm(kind, True, self._written(node), f"function {name} is evaluated by Spark: {reason}", tuple(terms))
        if name not in RULES:
            self._refuse_an_unknown(name, node)
            return SparkTerm(None, True, self._written(node), f"function {name} is evaluated by Spark", tuple(terms))
        return self._ruled(node, RULES[name], terms, name)

    def _refuse_an_unknown(self, name: str, node: SyntaxNode) -> None:
        # Signs and pairs of words belong to the grammar.
        if name.isidentifier() and name not in FUNCTIONS:
            near = nearest(name, FUNCTIONS | OWN)
            own = "functions of your own run in transform(...) and process(...)"
            raise self._site(node, name).refuse(f"Spark SQL has no function {name!r}", f"did you mean {near!r}? {own}" if near else own)

    def _ruled(self, node: SyntaxNode, rule: Rule, terms: list[Term], name: str = "field") -> Term:
        if any(term.kind is None for term in terms):
            return SparkTerm(None, True, self._written(node), "", tuple(terms))
        try:
            return rule(self._site(node, name), tuple(terms))
        except LeftToSpark as decision:
            return SparkTerm(decision.kind, True, self._written(node), decision.reason, tuple(terms))

    def _site(self, node: SyntaxNode, name: str) -> Site:
        return Site(name, node, self._text, self._where)

    def _written(self, node: SyntaxNode) -> str:
        return self._text[node.span.start : node.span.end]
