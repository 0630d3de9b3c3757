"""The arguments of `stream.match(...)`, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from headrace.api.arguments import Namer
from headrace.core.columns.names import Names
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.plan.building.step_place import columns_of, refuse_twice
from headrace.plan.expressions.syntax.problems import unknown_name
from headrace.plan.nodes import Node
from headrace.plan.patterns.formulas import Scope, parse_condition, parse_formula
from headrace.plan.patterns.grammar import parse_pattern
from headrace.plan.patterns.match import ALL, EVIDENCE, NEXT_ROW, ONE, OTHERS, PAST_LAST, PLACES, TO_FIRST, TO_LAST, After, Match, Pattern
from headrace.plan.patterns.parts import Absent, PatternPart, Variable


@dataclass(frozen=True)
class Sought:
    """A pattern as the user wrote it."""

    by: Names
    pattern: str
    define: Mapping[str, str]
    within: Duration | None
    measures: Mapping[str, str]
    where: str | None
    after: str
    rows: str
    skip: str | None


def matched(asked: Sought, node: Node, namer: Namer, at: str | None) -> Match:
    """The step that finds a pattern."""
    by = columns_of(asked.by, node, "match by")
    root = parse_pattern(asked.pattern, at)
    _refuse_words(asked, node, at)
    names = tuple(dict.fromkeys(part.name for part in root.walk() if isinstance(part, Variable | Absent) and part.name is not None))
    scope = Scope(node.columns, names, namer.aggregates, at)
    _refuse_names(asked, scope, at)
    defined = tuple(
        (variable, parse_condition(text, replace(scope, current=variable), f"define of {name}"))
        for name, text in asked.define.items() if (variable := scope.variable(name)) is not None
    )  # fmt: skip
    where = None if asked.where is None else parse_condition(asked.where, scope, "where")
    assert asked.within is not None
    pattern = Pattern(asked.pattern, root, defined, duration(asked.within), asked.skip == OTHERS, where)
    over = replace(scope, all_rows=asked.rows == ALL)
    measures = tuple((name, parse_formula(text, over)) for name, text in asked.measures.items())
    shown = list(node.columns) if asked.rows == ALL else [node.columns.field(name) for name in by]
    columns = pa.schema([*shown, *(pa.field(name, formula.typed.type) for name, formula in measures), pa.field(EVIDENCE, PLACES)])
    refuse_twice(columns, at)
    after = _after(asked.after, root, scope, at)
    return Match(namer.step_name(f"{node.name}.match"), columns, at, node, by, pattern, measures, after, asked.rows)


def _refuse_words(asked: Sought, node: Node, at: str | None) -> None:
    if asked.within is None:
        raise PlanError(
            f"match() of {node.name!r} has no within",
            why="rows that may still become a match would be kept for ever",
            hint='say how far its first and last row may be apart: within="5 minutes"',
            where=at,
        )
    if asked.rows not in (ONE, ALL):
        raise PlanError(f"rows={asked.rows!r} is not known", hint='"one" row a match, or "all" of its rows', where=at)
    if asked.skip not in (None, OTHERS):
        raise PlanError(
            f"skip={asked.skip!r} is not known", hint='"others" passes over rows that do not fit; leave it out otherwise', where=at
        )


def _refuse_names(asked: Sought, scope: Scope, at: str | None) -> None:
    for name in asked.define:
        if scope.variable(name) is None:
            fact, hint = unknown_name("variable", name, scope.variables)
            raise PlanError(f"define: {fact} in pattern {asked.pattern!r}", hint=hint, where=at)
    lowered = [name.lower() for name in scope.variables]
    twice = next((name for name in scope.variables if lowered.count(name.lower()) > 1), None)
    if twice is not None or len({name.lower() for name in asked.define}) < len(asked.define):
        raise PlanError(f"variable {twice or 'in define'} is written in two ways", hint="case does not tell variables apart", where=at)
    column = next((name for name in scope.columns.names if scope.variable(name) is not None), None)
    if column is not None:
        raise PlanError(
            f"{column!r} is a variable of the pattern and a column",
            why=f"{column}.x could be either",
            hint="give the variable another name",
            where=at,
        )


def _after(text: str, root: PatternPart, scope: Scope, at: str | None) -> After:
    said = str(text).lower().split()
    if said in (PAST_LAST.split(), NEXT_ROW.split()):
        return After(" ".join(said))
    if len(said) != 2 or said[0] not in (TO_FIRST, TO_LAST):
        raise PlanError(f"after={text!r} is not known", hint='"past last row", "next row", "first B" or "last B"', where=at)
    variable = scope.variable(said[1])
    matched = {part.name for part in root.walk() if isinstance(part, Variable)}
    if variable not in matched:
        fact, hint = unknown_name("variable", said[1], sorted(matched))
        raise PlanError(f"after={text!r}: {fact} with rows in the pattern", hint=hint, where=at)
    return After(said[0], variable)
