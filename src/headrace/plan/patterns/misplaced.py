"""Anchors and absences at places of a pattern where they can never be true, or say nothing."""

from __future__ import annotations

from headrace.core.errors import PlanError
from headrace.plan.patterns.parts import Absent, Beginning, Chain, Choice, Excluded, PatternPart, Repeat


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
    again = isinstance(part, Repeat) and part.most != 1
    return [found for child in part.children() for found in _absences(child, behind or (again and part.rows > 0))]


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
