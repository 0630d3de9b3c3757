"""The automaton of a pattern in words: its places, and what may come behind each, preferred ones first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headrace.core.durations import spelled
from headrace.operators.patterns.automaton import ANY, END, Automaton, Successor, automaton_of
from headrace.plan.nodes import Node
from headrace.plan.patterns.match import Match

_BEGIN = "begin"


@dataclass(frozen=True)
class DrawnPlace:
    """One place of an automaton: the variable that takes a row there, its condition, and what follows."""

    step: str
    place: str
    variable: str
    condition: str
    then: tuple[str, ...]


@dataclass(frozen=True)
class Drawing:
    """A pattern with its automaton. `evaluated` says how searches are made."""

    step: str
    pattern: str
    evaluated: str
    places: tuple[DrawnPlace, ...]

    def __str__(self) -> str:
        taken = [f"{one.place}: {one.variable}" if one.variable else one.place for one in self.places]
        wide, far = max(len(text) for text in taken), max(len(one.condition) for one in self.places)
        lines = [self.step, f"  {self.pattern}", f"  {self.evaluated}"]
        lines += [
            f"  {text:<{wide}}  {one.condition:<{far}}  -> {', or else '.join(one.then)}"
            for text, one in zip(taken, self.places, strict=True)
        ]
        return "\n".join(line.rstrip() for line in lines)


def drawings_of(nodes: Iterable[Node]) -> list[Drawing]:
    """The automata of the steps that match patterns."""
    return [_drawing(node) for node in nodes if isinstance(node, Match)]


def _drawing(node: Match) -> Drawing:
    """The automaton of a step."""
    return Drawing(node.name, str(node.pattern), _evaluated(node), tuple(_places(node)))


def _places(node: Match) -> Iterator[DrawnPlace]:
    automaton = automaton_of(node.pattern)
    conditions = {name: formula.words for name, formula in node.pattern.define}
    within = spelled(node.pattern.within)
    yield DrawnPlace(node.name, _BEGIN, "", "", _then(automaton, automaton.begin, within) or ("nothing",))
    if automaton.begin_anchored != automaton.begin:
        first = f"no row of the key in the {within} before"
        yield DrawnPlace(node.name, _BEGIN, "", first, _then(automaton, automaton.begin_anchored, within))
    for number, place in enumerate(automaton.places):
        variable = automaton.variables[place.variable]
        condition = conditions.get(variable, "any row") + (", not shown" if place.excluded else "")
        yield DrawnPlace(node.name, str(number + 1), variable, condition, _then(automaton, automaton.follow[number], within))


def _then(automaton: Automaton, following: tuple[Successor, ...], within: str) -> tuple[str, ...]:
    return tuple(_words(automaton, one, within) for one in following)


def _words(automaton: Automaton, waiting: Successor, within: str) -> str:
    absent = " and no ".join("other row" if one == ANY else automaton.variables[one] for one in sorted(waiting.absent))
    if waiting.place != END:
        return f"{waiting.place + 1}{f' if no {absent} comes before it' if absent else ''}"
    return f"match{f' if no {absent} comes until {within} after the first row' if absent else ''}"


def _evaluated(node: Match) -> str:
    looking = [name for name, formula in node.pattern.define if not formula.fixed]
    if looking:
        return (
            f"tried row by row, key by key: {', '.join(looking)} looks at matched rows; the conditions of all keys are evaluated together"
        )
    over = "; where it turns one down, the others are tried key by key" if node.pattern.where is not None else ""
    return f"one table of states, over all keys at once{over}"
