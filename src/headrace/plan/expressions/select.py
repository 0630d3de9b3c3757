"""Lists of columns: `url, upper(user) as u, *`, with the names Spark would give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from headrace.core.columns.schema import quoted
from headrace.core.errors import PlanError
from headrace.plan.expressions.expression import Expression, parse
from headrace.plan.expressions.syntax.grammar import Grammar
from headrace.plan.expressions.syntax.nodes import ColumnName, Member, Star
from headrace.plan.expressions.syntax.problems import unknown_name
from headrace.plan.expressions.syntax.tokens import Token, tokens

Named = tuple[str, Expression]


def parse_select(text: str, where: str | None = None) -> list[Named]:
    """The (name, expression) pairs of a select list; `*` stays one pair until `expand` knows the columns.

    >>> [name for name, _ in parse_select("url, upper(user) as u, amount * 2 total, *")]
    ['url', 'u', 'total', '*']
    """
    return [_item(item, where) for item in _items(text, where)]


def expand(items: Iterable[Named], schema: pa.Schema) -> list[Named]:
    """The same list with every `*` replaced by the columns it stands for; no name may occur twice.

    >>> [name for name, _ in expand(parse_select("* except (b), a + 1 as c"), pa.schema([("a", pa.int32()), ("b", pa.int32())]))]
    ['a', 'c']
    """
    columns = [pair for item in items for pair in _expanded(item, schema)]
    seen: set[str] = set()
    for name, expression in columns:
        if name.lower() in seen:
            raise PlanError(f"two columns would be called {name!r}", hint="give one of them another name with as", where=expression.where)
        seen.add(name.lower())
    return columns


def _items(text: str, where: str | None) -> Iterator[str]:
    """The text between commas outside of every bracket."""
    depth, start = 0, 0
    for token in tokens(text, where):
        depth += token.says("(", "[") - token.says(")", "]")
        if token.kind == "end" or (token.says(",") and depth == 0):
            yield text[start : token.start]
            start = token.end


def _item(text: str, where: str | None) -> Named:
    star = _star(text, where)
    if star is not None:
        return "*", star
    found = tokens(text, where)[:-1]
    if len(found) > 2 and found[-2].says("as") and _names(found[-1]):
        return found[-1].text, parse(text[: found[-2].start].strip(), where)
    try:
        expression = parse(text.strip(), where)
    except PlanError:
        if len(found) < 2 or not _names(found[-1]):
            raise
        return found[-1].text, parse(text[: found[-1].start].strip(), where)
    return _own_name(expression), expression


def _names(token: Token) -> bool:
    return token.kind in ("word", "quoted")


def _star(text: str, where: str | None) -> Expression | None:
    grammar = Grammar(text.strip(), where)
    star = grammar.star()
    if star is None:
        return None
    grammar.finish()
    return Expression(text.strip(), star, where)


def _own_name(expression: Expression) -> str:
    if isinstance(expression.root, ColumnName):
        return expression.root.parts[-1]
    if isinstance(expression.root, Member):
        return expression.root.name
    raise PlanError(
        f"{expression.text!r} has no name",
        why="later steps would have to repeat the whole expression to use it",
        hint=f"write {expression.text} as name",
        where=expression.where,
    )


def _expanded(item: Named, schema: pa.Schema) -> list[Named]:
    expression = item[1]
    star = expression.root
    if not isinstance(star, Star):
        return [item]
    fields, prefix = list(schema), ""
    for name in star.below:
        field = _found(name, fields, expression)
        if not isinstance(field.type, pa.StructType):
            raise PlanError(f"{name!r} in {expression.text} has no fields", hint="only a struct can be spread out", where=expression.where)
        fields, prefix = list(field.type), prefix + quoted(field.name) + "."
    left_out = {_found(name, fields, expression).name for name in star.without}
    return [(field.name, parse(prefix + quoted(field.name), expression.where)) for field in fields if field.name not in left_out]


def _found(name: str, fields: list[pa.Field], expression: Expression) -> pa.Field:
    for field in fields:
        if field.name.lower() == name.lower():
            return field
    fact, hint = unknown_name("column", name, [field.name for field in fields])
    raise PlanError(f"{fact} in {expression.text}", hint=hint, where=expression.where)
