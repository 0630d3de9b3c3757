"""Spark's expression grammar: its operators and their binding strength."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from headrace.core.columns.schema import data_type
from headrace.core.errors import SchemaError
from headrace.plan.expressions.syntax.forms import FORMS, TYPED_LITERALS, interval, typed_literal
from headrace.plan.expressions.syntax.literals import boolean, hexadecimal, nothing, number, string
from headrace.plan.expressions.syntax.nodes import Cast, ColumnName, FunctionCall, Literal, Member, NamedArgument, Star, SyntaxNode
from headrace.plan.expressions.syntax.problems import syntax_error
from headrace.plan.expressions.syntax.reader import TokenReader

# From the weakest to the strongest. Spark's comparisons are ordinary left-associative operators, weaker than `|`.
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("=", "==", "<=>", "<>", "!=", "<", "<=", "!>", ">", ">=", "!<"),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>", ">>>"),
    ("+", "-", "||"),
    ("*", "/", "%", "div"),
)
_SAME = {"==": "=", "!=": "<>", "!>": "<=", "!<": ">=", "||": "concat"}
_UNARY = {"-": "negative", "+": "positive", "~": "~"}
_WITH_UNIT = dict.fromkeys(("timestampadd", "dateadd", "date_add"), "timestampadd")
_WITH_UNIT |= dict.fromkeys(("timestampdiff", "datediff", "date_diff", "timediff"), "timestampdiff")
_NEVER_A_COLUMN = {
    "and",
    "or",
    "not",
    "is",
    "in",
    "like",
    "between",
    "case",
    "when",
    "then",
    "else",
    "end",
    "from",
    "where",
    "select",
    "as",
}


class Grammar(TokenReader):
    """A reader of one expression; each method reads one rule of the grammar."""

    def expression(self) -> SyntaxNode:
        return self._either("or", self._conjunction)

    def _conjunction(self) -> SyntaxNode:
        return self._either("and", self._negation)

    def _either(self, word: str, operand: Callable[[], SyntaxNode]) -> SyntaxNode:
        start = self.token.start
        left = operand()
        while self.accept(word):
            right = operand()
            left = FunctionCall(self.since(start), word, (left, right))
        return left

    def _negation(self) -> SyntaxNode:
        start = self.token.start
        if self.accept("not") or self.accept("!"):
            operand = self._negation()
            return FunctionCall(self.since(start), "not", (operand,))
        return self._predicate()

    def _predicate(self) -> SyntaxNode:
        start = self.token.start
        operand = self.value()
        if self.accept("is"):
            return self._is(start, operand)
        negated = self.token.says("not") and self.after().says("between", "in", "like", "ilike", "rlike", "regexp")
        if negated:
            self.take()
        found = self._range(start, operand)
        if found is None:
            return operand
        return FunctionCall(found.span, "not", (found,)) if negated else found

    def _is(self, start: int, operand: SyntaxNode) -> SyntaxNode:
        negated = self.accept("not")
        if self.accept("null") or self.accept("unknown"):
            return FunctionCall(self.since(start), "is not null" if negated else "is null", (operand,))
        if self.accept("distinct", "from"):
            other = self.value()
            found = FunctionCall(self.since(start), "<=>", (operand, other))
            return found if negated else FunctionCall(found.span, "not", (found,))
        if self.token.says("true", "false"):
            truth = boolean(self.take())
            found = FunctionCall(self.since(start), "<=>", (operand, truth))
            return FunctionCall(found.span, "not", (found,)) if negated else found
        raise self.wrong("expected null, true, false, unknown or distinct from")

    def _range(self, start: int, operand: SyntaxNode) -> SyntaxNode | None:
        if self.accept("between"):
            low = self.value()
            self.expect("and")
            high = self.value()
            return FunctionCall(self.since(start), "between", (operand, low, high))
        if self.accept("in"):
            self.expect("(")
            items = self._closed_list()
            return FunctionCall(self.since(start), "in", (operand, *items))
        if self.accept("rlike") or self.accept("regexp"):
            pattern = self.value()
            return FunctionCall(self.since(start), "rlike", (operand, pattern))
        if self.token.says("like", "ilike"):
            return self._like(start, operand)
        return None

    def _like(self, start: int, operand: SyntaxNode) -> SyntaxNode:
        name = self.take().text.lower()
        if self.token.says("any", "some", "all") and self.after().says("("):
            every = self.take().text.lower() == "all"
            self.take()
            patterns = self._closed_list()
            tests: list[SyntaxNode] = [FunctionCall(self.since(start), name, (operand, pattern)) for pattern in patterns]
            joined = tests[0]
            for test in tests[1:]:
                joined = FunctionCall(self.since(start), "and" if every else "or", (joined, test))
            return joined
        pattern = self.value()
        if not self.accept("escape"):
            return FunctionCall(self.since(start), name, (operand, pattern))
        if self.token.kind != "string":
            raise self.wrong("expected the escape character in quotes")
        escape = string(self.take())
        return FunctionCall(self.since(start), name, (operand, pattern, escape))

    def value(self, level: int = 0) -> SyntaxNode:
        """An expression of the given binding strength or stronger, without `and`, `or`, `not` and predicates."""
        if level == len(_LEVELS):
            return self._unary()
        start = self.token.start
        left = self.value(level + 1)
        while self.token.says(*_LEVELS[level]):
            sign = self.take().text.lower()
            right = self.value(level + 1)
            left = FunctionCall(self.since(start), _SAME.get(sign, sign), (left, right))
        return left

    def _unary(self) -> SyntaxNode:
        start = self.token.start
        if self.token.says("-") and self.after().kind == "number":
            minus = self.take()
            return self._postfix(start, number(self.take(), self, minus))
        if self.token.says("-", "+", "~"):
            sign = self.take().text
            operand = self._unary()
            return FunctionCall(self.since(start), _UNARY[sign], (operand,))
        return self._postfix(start, self._primary())

    def _postfix(self, start: int, node: SyntaxNode) -> SyntaxNode:
        while True:
            if self.accept("::"):
                kind = self.data_type()
                node = Cast(self.since(start), node, kind)
            elif self.accept("["):
                index = self.value()
                self.expect("]")
                node = FunctionCall(self.since(start), "[]", (node, index))
            elif self.token.says(".") and not self.after().says("*"):
                self.take()
                name = self.name()
                node = (
                    ColumnName(self.since(start), (*node.parts, name))
                    if isinstance(node, ColumnName)
                    else Member(self.since(start), node, name)
                )
            else:
                return node

    def _primary(self) -> SyntaxNode:
        token = self.token
        if token.kind == "number":
            return number(self.take(), self)
        if token.kind == "string":
            return self._strings()
        if token.kind == "hex":
            return hexadecimal(self.take(), self)
        if token.says("("):
            return self._parenthesis()
        if token.kind == "quoted":
            self.take()
            return ColumnName(self.since(token.start), (token.text,))
        if token.kind == "word":
            return self._worded()
        raise self.wrong("expected a value")

    def _strings(self) -> Literal:
        start = self.token.start
        first = string(self.take())
        text = str(first.value)
        while self.token.kind == "string":
            text += self.take().text
        return Literal(self.since(start), text, first.kind)

    def _parenthesis(self) -> SyntaxNode:
        start = self.take().start
        items = self._closed_list()
        if len(items) == 1:
            return items[0]
        return FunctionCall(self.since(start), "struct", _fields(items))

    def _worded(self) -> SyntaxNode:
        token = self.token
        word = token.text.lower()
        if word in ("true", "false") and not self.after().says("(", "."):
            return boolean(self.take())
        if word == "null" and not self.after().says("("):
            return nothing(self.take())
        if word in TYPED_LITERALS and self.after().kind == "string":
            return typed_literal(self)
        if word == "interval" and (found := interval(self)) is not None:
            return found
        if word == "case" or (word in FORMS and self.after().says("(")):
            return FORMS[word](self)
        if self.after().says("(") and word not in _NEVER_A_COLUMN:
            return self._call()
        if word in _NEVER_A_COLUMN:
            raise self.wrong("expected a value")
        self.take()
        return ColumnName(self.since(token.start), (token.text,))

    def _call(self) -> SyntaxNode:
        start = self.token.start
        name = self.take().text.lower()
        self.take()
        if name == "count" and self.accept("*", ")"):
            return self._chosen(FunctionCall(self.since(start), name, ()))
        if self.token.says("*") and self.after().says(")"):
            raise self.wrong(f"count(*) counts records, and {name}(*) is not known")
        distinct = self.accept("distinct")
        arguments = () if self.accept(")") else tuple(self._closed_list(named=name == "struct"))
        if name == "struct":
            arguments = _fields(arguments)
        if name in _WITH_UNIT and len(arguments) == 3 and isinstance(arguments[0], ColumnName):
            unit = Literal(arguments[0].span, arguments[0].name.lower(), pa.string())
            return FunctionCall(self.since(start), _WITH_UNIT[name], (unit, *arguments[1:]))
        return self._chosen(FunctionCall(self.since(start), name, arguments, distinct))

    def _chosen(self, call: FunctionCall) -> FunctionCall:
        """A call with its suffix: the rows that it applies to, and whether nulls count."""
        if self.accept("filter", "(", "where"):
            condition = self.expression()
            self.expect(")")
            call = replace(call, filter=condition)
        ignores_nulls = self.accept("ignore", "nulls")
        if not ignores_nulls:
            self.accept("respect", "nulls")
        return replace(call, span=self.since(call.span.start), ignores_nulls=ignores_nulls)

    def _closed_list(self, named: bool = False) -> list[SyntaxNode]:
        items = [self._item(named)]
        while self.accept(","):
            items.append(self._item(named))
        self.expect(")")
        return items

    def _item(self, named: bool) -> SyntaxNode:
        start = self.token.start
        item = self.expression()
        if named and self.accept("as"):
            return NamedArgument(self.since(start), item, self.name())
        return item

    def data_type(self) -> pa.DataType:
        """A type as in DDL: `decimal(10,2)`, `array<int>`."""
        start = self.token.start
        self.name()
        if self.accept("("):
            while not self.accept(")"):
                if self.take().kind == "end":
                    raise self.wrong("expected ')'")
        elif self.token.says("<"):
            depth = 0
            while depth > 0 or self.token.says("<"):
                if self.token.kind == "end":
                    raise self.wrong("expected '>'")
                depth += self.token.text.count("<") - self.token.text.count(">")
                self.take()
        span = self.since(start)
        try:
            return data_type(self.text[span.start : span.end])
        except (SchemaError, ValueError) as problem:
            raise syntax_error(self.text, start, f"{self.text[span.start : span.end]!r} is not a type", self.where) from problem

    def star(self) -> Star | None:
        """`*`, `* except (a, b)` or `place.*`, in a list of columns."""
        start = self.token.start
        place = self.place
        below: list[str] = []
        while self.token.kind in ("word", "quoted") and self.after().says("."):
            below.append(self.take().text)
            self.take()
        if not self.accept("*"):
            self.back_to(place)
            return None
        without: list[str] = []
        if self.accept("except", "("):
            without.append(self.name())
            while self.accept(","):
                without.append(self.name())
            self.expect(")")
        return Star(self.since(start), tuple(below), tuple(without))


def _fields(items: Sequence[SyntaxNode]) -> tuple[SyntaxNode, ...]:
    """The arguments of `struct`, each with the name that Spark gives its field."""
    return tuple(
        item
        if isinstance(item, NamedArgument)
        else NamedArgument(item.span, item, item.parts[-1] if isinstance(item, ColumnName) else f"col{place}")
        for place, item in enumerate(items, 1)
    )
