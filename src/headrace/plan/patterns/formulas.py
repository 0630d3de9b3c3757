"""Expressions over matched rows: Spark SQL, in which `first(A.x)`, `count(A.*)` and the like stand for values of the match.

Each such value becomes a placeholder, so that what is left is an ordinary expression over one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa

from headrace.core.columns.schema import quoted, type_name
from headrace.core.errors import PlanError
from headrace.plan.aggregates.checked import aggregation
from headrace.plan.aggregates.nodes import TypedCall as AggregateCall
from headrace.plan.aggregates.user_aggregate import Aggregate
from headrace.plan.expressions import AGGREGATES, Expression, Typed, check
from headrace.plan.expressions.expression import of_a_row
from headrace.plan.expressions.syntax.grammar import Grammar
from headrace.plan.expressions.syntax.nodes import ColumnName, FunctionCall, Literal, Star, SyntaxNode, substituted
from headrace.plan.expressions.syntax.problems import type_error, unknown_name

FIRST, LAST, PREVIOUS, AGGREGATE, NUMBER, CLASSIFIER = "first", "last", "prev", "aggregate", "match_number", "classifier"
_WHOLE, _SO_FAR = "final", "running"
_OURS = frozenset({FIRST, LAST, PREVIOUS, NUMBER, CLASSIFIER, _WHOLE, _SO_FAR})
# Names of placeholders, which no column of a user has.
PLACEHOLDER = "_match value "


@dataclass(frozen=True)
class Value:
    """A value of the matched rows, under the name of its placeholder.

    `variable` is whose rows count, None for all of them; `row` is evaluated for one row, `offset` rows from the first or last one, or
    before the current one; `call` aggregates all of them. `whole` says that rows count which are matched later.
    """

    kind: str
    placeholder: str
    type: pa.DataType
    variable: str | None = None
    row: Typed | None = None
    offset: int = 0
    call: AggregateCall | None = None
    whole: bool = False


@dataclass(frozen=True)
class Formula:
    """An expression over the current row and `values` of the match."""

    text: str
    typed: Typed
    values: tuple[Value, ...]

    @property
    def fixed(self) -> bool:
        """Whether it is the same for a row in every match: it looks at the row and at those before it, matched or not."""
        return all(value.kind == PREVIOUS for value in self.values)

    @property
    def columns(self) -> frozenset[str]:
        """The columns of rows that it reads, as written."""
        typed = [self.typed, *(value.row for value in self.values if value.row is not None)]
        for value in self.values:
            if value.call is not None:
                typed += [*value.call.arguments, *(() if value.call.filter is None else (value.call.filter,))]
        return frozenset(name for one in typed for name in one.expression.columns if not name.startswith(PLACEHOLDER))

    @property
    def words(self) -> str:
        return " ".join(self.text.split())

    @property
    def content(self) -> tuple[Any, ...]:
        """What it computes, whatever its blanks and case."""
        return (
            self.typed,
            *((value.kind, value.variable, value.row, value.offset, _content(value.call), value.whole) for value in self.values),
        )


def _content(call: AggregateCall | None) -> tuple[Any, ...] | None:
    return None if call is None else (call.function, call.arguments, call.filter, call.type, call.options, call.own)


@dataclass(frozen=True)
class Scope:
    """What a formula may name: the columns of a row, the variables of the pattern, aggregates of the user's.

    `current` is the variable whose condition it is; None for measures and conditions over the match.
    """

    columns: pa.Schema
    variables: tuple[str, ...]
    own: Mapping[str, Aggregate]
    where: str | None
    current: str | None = None
    all_rows: bool = False
    """Whether it is evaluated for each row of a match, where rows that come later count only with `final`."""

    def variable(self, name: str) -> str | None:
        """The variable of that name, whatever its case."""
        return next((one for one in self.variables if one.lower() == name.lower()), None)


def parse_formula(text: str, scope: Scope) -> Formula:
    """Read an expression over matched rows."""
    return _FormulaReader(text, scope).formula()


def parse_condition(text: str, scope: Scope, role: str) -> Formula:
    """Read one that is true or false; `role` names it in errors."""
    formula = parse_formula(text, scope)
    kind = formula.typed.type
    if kind is not None and pa.types.is_null(kind):
        return replace(parse_formula(f"cast({text} as boolean)", scope), text=text)
    if kind is not None and not pa.types.is_boolean(kind):
        raise PlanError(f"{role} {text!r} is {type_name(kind)}, not a condition", hint="compare it with something", where=scope.where)
    return formula


class _Grammar(Grammar):
    """Spark's expressions, with `A.*` as an argument and `final` or `running` before a call."""

    def __init__(self, text: str, scope: Scope) -> None:
        super().__init__(text, scope.where)
        # A variable may be called like a word of SQL: FROM.amount.
        for number, (token, behind) in enumerate(pairwise(self._tokens)):
            if token.kind == "word" and behind.says(".") and scope.variable(token.text) is not None:
                self._tokens[number] = replace(token, kind="quoted")

    def _item(self, named: bool) -> SyntaxNode:
        return self.star() or super()._item(named)

    def _worded(self) -> SyntaxNode:
        start = self.token.start
        if self.token.says(_WHOLE, _SO_FAR) and self.after().kind == "word" and self.after(2).says("("):
            word = self.take().text.lower()
            call = super()._worded()
            return FunctionCall(self.since(start), word, (call,))
        return super()._worded()


class _FormulaReader:
    def __init__(self, text: str, scope: Scope) -> None:
        self._text, self._scope = text, scope
        self._aggregates = AGGREGATES | set(scope.own)
        self._values: dict[tuple[object, ...], Value] = {}

    def formula(self) -> Formula:
        grammar = _Grammar(self._text, self._scope)
        root = grammar.expression()
        grammar.finish()
        root = substituted(root, self._placeholder)
        values = tuple(self._values.values())
        return Formula(self._text, self._checked(root, [pa.field(value.placeholder, value.type) for value in values]), values)

    def _placeholder(self, node: SyntaxNode) -> SyntaxNode | None:
        """The column that stands for a value of the match, which may be one of the current row; None for what is no such value."""
        if isinstance(node, FunctionCall) and (node.name in _OURS or node.name in self._aggregates):
            return self._kept(self._value(node), node)
        if isinstance(node, ColumnName) and (variable := self._variable(node)) is not None:
            inner = self._inner(node, variable)
            if variable == self._scope.current:
                return inner
            return self._kept(Value(LAST, "", pa.null(), variable, self._checked(inner)), node)
        if isinstance(node, FunctionCall) and node.name in ("next", "lead"):
            hint = "a match sees rows up to the current one: add a variable for the next row, and compare in its condition"
            raise self._refuse(node, f"{node.name}(...) looks at a row that comes later", hint)
        if isinstance(node, FunctionCall) and node.name == "lag":
            raise self._refuse(node, "lag(...) is a function of windows", "prev(amount) is that of the previous row, in define")
        if isinstance(node, Star):
            raise self._refuse(node, "this cannot stand in an expression", "count(A.*) counts the rows of A")
        return None

    def _value(self, node: FunctionCall) -> Value:
        whole = not self._scope.all_rows and self._scope.current is None
        if node.name in (_WHOLE, _SO_FAR):
            if self._scope.current is not None and node.name == _WHOLE:
                raise self._refuse(node, "final stands in a condition of a row", "a condition sees the rows matched so far, no later ones")
            whole = node.name == _WHOLE
            inner = node.arguments[0]
            if not isinstance(inner, FunctionCall) or inner.name not in (FIRST, LAST, *self._aggregates):
                raise self._refuse(node, f"{node.name} stands before first, last and aggregates", None)
            node = inner
        if node.name in (FIRST, LAST):
            return self._navigated(node, whole)
        if node.name == PREVIOUS:
            return self._previous(node)
        if node.name in (NUMBER, CLASSIFIER):
            return self._of_match(node)
        return self._aggregated(node, whole)

    def _navigated(self, node: FunctionCall, whole: bool) -> Value:
        variable, row, offset = self._row_and_offset(node)
        return Value(node.name, "", pa.null(), variable, row, offset, whole=whole)

    def _previous(self, node: FunctionCall) -> Value:
        if self._scope.current is None:
            raise self._refuse(node, "prev(...) stands outside of define", "last(A.x, 1) is the value of the matched row before the last")
        variable, row, offset = self._row_and_offset(node)
        if variable not in (None, self._scope.current):
            hint = "prev(x) is x of the row before the current one; last(A.x) is that of the last row of A"
            raise self._refuse(node, f"prev(...) of {variable}", hint)
        return Value(PREVIOUS, "", pa.null(), None, row, 1 if len(node.arguments) == 1 else offset)

    def _of_match(self, node: FunctionCall) -> Value:
        if node.arguments or self._scope.current is not None:
            raise self._refuse(node, f"{node.name}() takes nothing and stands in measures", None)
        kind = pa.int64() if node.name == NUMBER else pa.string()
        return Value(node.name, "", kind)

    def _aggregated(self, node: FunctionCall, whole: bool) -> Value:
        variable, _ = self._unqualified(node)
        calls, _ = aggregation({"value": self._without_variables(node)}, self._scope.columns, self._scope.where, self._scope.own)
        call = replace(calls[0], written=self._text[node.span.start : node.span.end])
        for typed in (*call.arguments, *(() if call.filter is None else (call.filter,))):
            self._refuse_spark(typed)
        return Value(AGGREGATE, "", call.type, variable, call=call, whole=whole)

    def _row_and_offset(self, node: FunctionCall) -> tuple[str | None, Typed, int]:
        if not 1 <= len(node.arguments) <= 2 or node.distinct or node.filter is not None or node.ignores_nulls:
            raise self._refuse(node, f"{node.name} takes a value and a number of rows", f"{node.name}(amount), {node.name}(amount, 1)")
        self._refuse_nested(node.arguments[0])
        variable, row = self._unqualified(node.arguments[0])
        offset = 0
        if len(node.arguments) == 2:
            number = node.arguments[1]
            if not isinstance(number, Literal) or not isinstance(number.value, int) or isinstance(number.value, bool) or number.value < 0:
                raise self._refuse(number, "the number of rows is a whole number of zero or more", f"{node.name}(amount, 1)")
            offset = number.value
        return variable, self._checked(row), offset

    def _unqualified(self, node: SyntaxNode) -> tuple[str | None, SyntaxNode]:
        """Whose rows an argument is about, and the argument without the name of that variable."""
        names = set[str | None]()

        def unqualified(part: SyntaxNode) -> SyntaxNode | None:
            if part is not node:
                self._refuse_nested(part)
            if isinstance(part, Star):
                if len(part.below) != 1 or not isinstance(node, FunctionCall) or node.name != "count" or node.distinct:
                    raise self._refuse(part, "only count takes all columns", "count(A.*)")
                names.add(self._known(part, part.below[0]))
                return Star(part.span)
            if not isinstance(part, ColumnName):
                return None
            variable = self._variable(part)
            names.add(variable)
            return part if variable is None else self._inner(part, variable)

        found = substituted(node, unqualified)
        if len(names) > 1:
            said = " and ".join(sorted(name or "any row" for name in names))
            raise self._refuse(node, f"one value is about the rows of {said}", "name one variable: sum(A.amount * A.rate)")
        return next(iter(names), None), found

    def _without_variables(self, node: SyntaxNode) -> str:
        """The text of an aggregate without the names of variables."""
        written, end = "", node.span.start
        parts = {part.span.start: part for part in node.walk() if isinstance(part, ColumnName | Star)}
        for start, part in sorted(parts.items()):
            column = isinstance(part, ColumnName) and self._variable(part) is None
            if not column:
                written += self._text[end:start] + ("*" if isinstance(part, Star) else ".".join(map(quoted, part.parts[1:])))
                end = part.span.end
        return written + self._text[end : node.span.end]

    def _refuse_nested(self, part: SyntaxNode) -> None:
        if isinstance(part, FunctionCall) and (part.name in _OURS or part.name in self._aggregates):
            hint = "first, last, prev and aggregates take columns of rows: last(A.amount, 1), sum(A.amount * A.rate)"
            raise self._refuse(part, f"{part.name}(...) stands inside another value of the match", hint)

    def _known(self, node: SyntaxNode, name: str) -> str:
        variable = self._scope.variable(name)
        if variable is None:
            fact, hint = unknown_name("variable", name, self._scope.variables)
            raise self._refuse(node, fact, hint)
        return variable

    def _variable(self, node: ColumnName) -> str | None:
        """The variable whose column is named; None for a column of any row."""
        variable = self._scope.variable(node.name)
        if variable is None and len(node.parts) > 1 and node.name.lower() not in map(str.lower, self._scope.columns.names):
            return self._known(node, node.name)
        return variable

    def _inner(self, node: ColumnName, variable: str) -> ColumnName:
        if len(node.parts) == 1:
            raise self._refuse(
                node, f"{variable} is a variable of the pattern, not a column", f"name a column of its row: {variable}.amount"
            )
        return ColumnName(node.span, node.parts[1:])

    def _checked(self, root: SyntaxNode, computed: Sequence[pa.Field] = ()) -> Typed:
        typed = check(of_a_row(Expression(self._text, root, self._scope.where)), self._scope.columns, computed)
        self._refuse_spark(typed)
        return typed

    def _refuse_spark(self, typed: Typed) -> None:
        if not typed.fused or typed.type is None:
            raise PlanError(
                f"{self._text!r} needs Spark to be evaluated",
                why=f"rows are matched without it, and {typed.reason}",
                hint="compute it into a column before the match, or from its measures after it: with_columns(...)",
                where=self._scope.where,
            )

    def _kept(self, value: Value, node: SyntaxNode) -> ColumnName:
        """The column of a value, under its placeholder: the same one for the same value."""
        kind = value.row.type if value.row is not None else value.type
        key = (value.kind, value.variable, value.row, value.offset, value.call and replace(value.call, placeholder=""), value.whole)
        named = replace(value, placeholder=f"{PLACEHOLDER}{self._scope.current or ''} {len(self._values)}", type=kind)
        return ColumnName(node.span, (self._values.setdefault(key, named).placeholder,))

    def _refuse(self, node: SyntaxNode, what: str, hint: str | None) -> PlanError:
        return type_error(self._text, node.span, what, self._scope.where, hint)
