"""Anchors and absences at places of a pattern where they can never be true, or say nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.core.errors import PlanError
from headrace.plan.patterns.parts import Absent, Beginning, Chain, Choice, Excluded, PatternPart, Repeat, Variable


def refuse_misplaced(root: PatternPart, text: str, where: str | None, *, relaxed: bool) -> None:
    """Raise if a part of a pattern stands where it can never be true."""
    if _begins_late(root, False):
        raise PlanError(
            f"^ is behind a row of the pattern {text!r}",
            why="it says that no row of the key came before, so this could never match",
            hint="^ is the beginning of a pattern",
            where=where,
        )
    if _begins_with_absence(root):
        raise PlanError(
            f"pattern {text!r} begins with an absence",
            why="a match begins with a row, and the time of the match with it",
            hint="begin with a variable: A !B",
            where=where,
        )
    for part, behind in _absences(root, False):
        said = "$" if part.name is None else f"!{part.name}"
        if behind and part.name is None:
            raise PlanError(
                f"pattern {text!r} continues after $",
                why="no row of the key follows it",
                hint="$ is the end of a pattern",
                where=where,
            )
        if behind and not relaxed:
            raise PlanError(
                f"{said} is between rows of the pattern {text!r}",
                why="the next row follows directly, so that nothing can come in between",
                hint='skip other rows: skip="others"; or put it at the end',
                where=where,
            )
    if not _ends(root, frozenset({_Reached()})):
        raise PlanError(
            f"pattern {text!r} never matches",
            why="^ is behind a row, or $ before one, in what is repeated",
            hint="repeat what is between them: ^ A{2}, A{2} $",
            where=where,
        )


@dataclass(frozen=True)
class _Reached:
    """What is known behind a part: whether there was a row, and whether `$` says that none comes."""

    row: bool = False
    closed: bool = False


def _ends(part: PatternPart, reached: frozenset[_Reached]) -> frozenset[_Reached]:
    """What may be behind a part; nothing if no way leads through it."""
    if isinstance(part, Variable):
        return frozenset(_Reached(row=True) for one in reached if not one.closed)
    if isinstance(part, Beginning):
        return frozenset(one for one in reached if not one.row)
    if isinstance(part, Absent):
        return frozenset(replace(one, closed=one.closed or part.name is None) for one in reached)
    if isinstance(part, Choice):
        return frozenset(one for option in part.options for one in _ends(option, reached))
    if isinstance(part, Repeat):
        # Once more changes nothing after three times.
        for _ in range(min(part.least, 4)):
            reached = _ends(part.part, reached)
        more = 4 if part.most is None else min(part.most - part.least, 4)
        for _ in range(more):
            reached |= _ends(part.part, reached)
        return reached
    for child in part.children():
        reached = _ends(child, reached)
    return reached


def _absences(part: PatternPart, behind: bool) -> list[tuple[Absent, bool]]:
    """Every absence, and whether a row of the pattern may follow it."""
    if isinstance(part, Absent):
        return [(part, behind)]
    if isinstance(part, Chain):
        found, follows = list[tuple[Absent, bool]](), behind
        for one in reversed(part.parts):
            found += _absences(one, follows)
            follows = follows or one.rows > 0
        return found
    again = isinstance(part, Repeat) and part.most != 1 and part.rows > 0
    inside = [found for child in part.children() for found in _absences(child, behind)]
    # `$` in the last repetition is at the end: (A | B $)+.
    return [(one, follows or (again and one.name is not None)) for one, follows in inside]


def _begins_late(part: PatternPart, behind: bool) -> bool:
    """Whether there is a `^` that a row always comes before."""
    if isinstance(part, Beginning):
        return behind
    if isinstance(part, Chain):
        for one in part.parts:
            if _begins_late(one, behind):
                return True
            behind = behind or not one.optional
        return False
    return any(_begins_late(child, behind) for child in part.children())


def _begins_with_absence(part: PatternPart) -> bool:
    """Whether an absence may stand before the first row."""
    if isinstance(part, Absent):
        return True
    if isinstance(part, Chain):
        for one in part.parts:
            if _begins_with_absence(one):
                return True
            if not one.optional:
                return False
        return False
    return isinstance(part, Choice | Repeat | Excluded) and any(_begins_with_absence(child) for child in part.children())
