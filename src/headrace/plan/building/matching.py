"""The step that finds a pattern, built from the texts of the pattern, its conditions and its measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from headrace.core.columns.names import Names
from headrace.core.durations import Duration, duration
from headrace.plan.building.step_place import StepPlace, refuse_twice
from headrace.plan.checks.over_changes import refuse_changes_where_a_step_needs_facts
from headrace.plan.expressions.syntax.problems import unknown_name
from headrace.plan.patterns.formulas import NUMBER, Formula, Scope, parse_condition, parse_formula
from headrace.plan.patterns.grammar import parse_pattern
from headrace.plan.patterns.match import ALL, EVIDENCE, NEXT_ROW, ONE, OTHERS, PAST_LAST, PLACES, TO_FIRST, TO_LAST, After, Match, Pattern
from headrace.plan.patterns.parts import Absent, PatternPart, Variable

# The conditions of a row are bits of one number.
_MOST_VARIABLES = 62


@dataclass(frozen=True)
class MatchArguments:
    """The arguments of `match`: the key, the pattern, its conditions and measures, and which rows a match emits."""

    by: Names
    pattern: str
    define: Mapping[str, str]
    within: Duration | None
    measures: Mapping[str, str]
    where: str | None = None
    after: str = PAST_LAST
    rows: str = ONE
    skip: str | None = None
    order: Names | None = None


def match(after: StepPlace, asked: MatchArguments) -> Match:
    by = after.columns_of(asked.by, "match by")
    root = parse_pattern(asked.pattern, after.at)
    _refuse_words(after, asked)
    names = tuple(dict.fromkeys(part.name for part in root.walk() if isinstance(part, Variable | Absent) and part.name is not None))
    scope = Scope(after.columns, names, after.names.aggregates, after.at)
    _refuse_names(after, asked, scope)
    defined = tuple(
        (variable, parse_condition(text, replace(scope, current=variable), f"define of {name}"))
        for name, text in asked.define.items() if (variable := scope.variable(name)) is not None
    )  # fmt: skip
    where = None if asked.where is None else _where(after, asked.where, scope)
    assert asked.within is not None
    pattern = Pattern(asked.pattern, root, defined, duration(asked.within), asked.skip == OTHERS, where)
    over = replace(scope, all_rows=asked.rows == ALL)
    measures = tuple((name, parse_formula(text, over)) for name, text in asked.measures.items())
    shown = list(after.columns) if asked.rows == ALL else [after.columns.field(name) for name in by]
    columns = pa.schema([*shown, *(pa.field(name, formula.typed.type) for name, formula in measures), pa.field(EVIDENCE, PLACES)])
    refuse_twice(columns, after.at)
    goes_on = _goes_on(after, asked.after, root, scope)
    order = _order(after, asked.order)
    made = Match(after.called("match"), columns, after.at, after.node, by, pattern, measures, goes_on, asked.rows, order)
    refuse_changes_where_a_step_needs_facts(made)
    return made


def _order(after: StepPlace, asked: Names | None) -> tuple[str, ...]:
    """The columns that decide among records of one time."""
    order = () if asked is None else after.columns_of(asked, "match order")
    nested = next((name for name in order if pa.types.is_nested(after.columns.field(name).type)), None)
    if nested is not None:
        raise after.refused(f"match order by {nested!r}, which has parts", hint="order by one of its parts: add it with with_columns(...)")
    return order


def _where(after: StepPlace, text: str, scope: Scope) -> Formula:
    """The condition over a complete match."""
    where = parse_condition(text, scope, "where")
    if any(value.kind == NUMBER for value in where.values):
        raise after.refused(
            f"match_number() in where={text!r}",
            why="a match has its number once where is true for it",
            hint='make it a measure, and keep what is wanted after the match: match(..., measures={"number": "match_number()"}).where(...)',
        )
    return where


def _refuse_words(after: StepPlace, asked: MatchArguments) -> None:
    for role, given in (("define", asked.define), ("measures", asked.measures)):
        if not isinstance(given, Mapping):
            raise after.refused(f"{role}={given!r} has no names", hint=f'{role}={{"A": "amount > 500"}}')
    if asked.within is None:
        raise after.refused(
            f"match() of {after.node.name!r} has no within",
            why="rows that may still become a match would be kept forever",
            hint='say how far its first and last row may be apart: within="5 minutes"',
        )
    if asked.rows not in (ONE, ALL):
        raise after.refused(f"rows={asked.rows!r} is not known", hint='"one" row per match, or "all" of its rows')
    if asked.skip not in (None, OTHERS):
        raise after.refused(f"skip={asked.skip!r} is not known", hint='"others" skips rows that do not fit; leave it out otherwise')


def _refuse_names(after: StepPlace, asked: MatchArguments, scope: Scope) -> None:
    if len(scope.variables) > _MOST_VARIABLES:
        raise after.refused(
            f"the pattern has {len(scope.variables)} variables",
            hint=f"at most {_MOST_VARIABLES}: rows of different variables may share one, with a condition that is true for each of them",
        )
    for name in asked.define:
        if scope.variable(name) is None:
            fact, hint = unknown_name("variable", name, scope.variables)
            raise after.refused(f"define: {fact} in pattern {asked.pattern!r}", hint=hint)
    lowered = [name.lower() for name in scope.variables]
    twice = next((name for name in scope.variables if lowered.count(name.lower()) > 1), None)
    if twice is not None or len({name.lower() for name in asked.define}) < len(asked.define):
        raise after.refused(f"variable {twice or 'in define'} is written in two ways", hint="case does not tell variables apart")
    column = next((name for name in scope.columns.names if scope.variable(name) is not None), None)
    if column is not None:
        raise after.refused(
            f"{column!r} is a variable of the pattern and a column",
            why=f"{column}.x could be either",
            hint="give the variable another name",
        )


def _goes_on(after: StepPlace, text: str, root: PatternPart, scope: Scope) -> After:
    """The row from which the search continues after a match."""
    said = str(text).lower().split()
    if said in (PAST_LAST.split(), NEXT_ROW.split()):
        return After(" ".join(said))
    if len(said) != 2 or said[0] not in (TO_FIRST, TO_LAST):
        raise after.refused(f"after={text!r} is not known", hint='"past last row", "next row", "first B" or "last B"')
    variable = scope.variable(said[1])
    matched = {part.name for part in root.walk() if isinstance(part, Variable)}
    if variable not in matched:
        fact, hint = unknown_name("variable", said[1], sorted(matched))
        raise after.refused(f"after={text!r}: {fact} with rows in the pattern", hint=hint)
    return After(said[0], variable)
