"""The step of a plan that finds patterns among the rows of each key, in the order of event time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.plan.nodes import FactsOnly, KeyedStep, StateSummary
from headrace.plan.patterns.formulas import Formula
from headrace.plan.patterns.parts import Absent, Beginning, Chain, Choice, Excluded, PatternPart, Repeat, Variable

PAST_LAST, NEXT_ROW, TO_FIRST, TO_LAST = "past last row", "next row", "first", "last"
ONE, ALL = "one", "all"
OTHERS = "others"
EVIDENCE = "evidence"
PLACES = pa.list_(
    pa.field("element", pa.struct([pa.field("variable", pa.string()), pa.field("partition", pa.int32()), pa.field("offset", pa.int64())]))
)


@dataclass(frozen=True)
class After:
    """The place where the search continues after a match; `variable` is whose first or last row it is."""

    kind: str
    variable: str | None = None

    def __str__(self) -> str:
        return self.kind if self.variable is None else f"{self.kind} {self.variable}"


@dataclass(frozen=True)
class Pattern:
    """What is searched for: the parts, as written in `text`, and the conditions of the variables; a variable without one takes any row.

    First and last row of a match are at most `within` apart, inclusive. `relaxed`: rows that do not fit are passed over.
    """

    text: str
    root: PatternPart
    define: tuple[tuple[str, Formula], ...]
    within: timedelta
    relaxed: bool
    where: Formula | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables of the pattern, each once, in the order of the text."""
        names = [part.name for part in self.root.walk() if isinstance(part, Variable | Absent) and part.name is not None]
        return tuple(dict.fromkeys(names))

    @property
    def fixed(self) -> bool:
        """Whether every condition is the same for a row in every match."""
        return all(condition.fixed for _, condition in self.define)

    @property
    def anchored(self) -> bool:
        return any(isinstance(part, Beginning) for part in self.root.walk())

    def __str__(self) -> str:
        said = [f"{name} as {condition.words}" for name, condition in self.define]
        parts = [f"pattern {' '.join(self.text.split())}"]
        parts += [f"with {', '.join(said)}"] if said else []
        parts += [f"where {self.where.words}"] if self.where is not None else []
        return f"{' '.join(parts)} within {spelled(self.within)}{', other rows passed over' if self.relaxed else ''}"


@dataclass(frozen=True)
class Match(KeyedStep):
    """The matches of a pattern by key: one row each, or all rows of each, with measures and the places of their events."""

    pattern: Pattern
    measures: tuple[tuple[str, Formula], ...]
    after: After
    rows: str = ONE
    order: tuple[str, ...] = ()
    """The columns that decide among records of one time, before partition and offset do."""

    def __post_init__(self) -> None:
        for refuse in (self._refuse_no_key, self._refuse_no_time, self._refuse_misplaced):
            refuse()

    @property
    def keys(self) -> tuple[str, ...]:
        return ()

    @property
    def waits(self) -> bool:
        return True

    @property
    def facts_only(self) -> FactsOnly:
        return FactsOnly("patterns among", "a result that is retracted was part of matches already")

    @property
    def does(self) -> str:
        measures = [f"{formula.words} as {name}" for name, formula in self.measures]
        shown = "all rows" if self.rows == ALL else "one row a match"
        said = f": {', '.join(measures)}" if measures else ""
        order = f", records of one time by {', '.join(self.order)}" if self.order else ""
        return f"match by {', '.join(self.by)} {self.pattern}{order}, after a match {self.after}, {shown}{said}"

    @property
    def state_summary(self) -> StateSummary:
        return StateSummary(
            "records that wait for the watermark, and those that may be part of a match", f"{spelled(self.pattern.within)} after a record"
        )

    def _refuse_no_key(self) -> None:
        if not self.by:
            raise PlanError(f"match() of {self.input.name!r} has no key", hint="say whose records make up a pattern: by=", where=self.where)
        if self.pattern.within <= timedelta(0):
            raise PlanError(
                f"within of {self.name!r} is {spelled(self.pattern.within)}",
                why="it is how far the first and the last row of a match may be apart",
                hint="give a duration above zero",
                where=self.where,
            )

    def _refuse_no_time(self) -> None:
        if not self.input.watermarked:
            raise PlanError(
                f"match() over {self.input.name!r}, which has no event time",
                why="records of several partitions come in no order of their own",
                hint="declare the stream with time= and watermark=",
                where=self.where,
            )

    def _refuse_misplaced(self) -> None:
        if _begins_late(self.pattern.root, False):
            raise PlanError(
                f"^ is behind a row of the pattern {self.pattern.text!r}",
                why="it says that no row of the key came before, so this could never match",
                hint="^ is the beginning of a pattern",
                where=self.where,
            )
        if _begins_with_absence(self.pattern.root):
            raise PlanError(
                f"pattern {self.pattern.text!r} begins with an absence",
                why="a match begins with a row, and the time of the match with it",
                hint="begin with a variable: A !B",
                where=self.where,
            )
        for part, behind in _absences(self.pattern.root, False):
            said = "$" if part.name is None else f"!{part.name}"
            if behind and part.name is None:
                raise PlanError(
                    f"pattern {self.pattern.text!r} continues after $",
                    why="no row of the key follows it",
                    hint="$ is the end of a pattern",
                    where=self.where,
                )
            if behind and not self.pattern.relaxed:
                raise PlanError(
                    f"{said} is between rows of the pattern {self.pattern.text!r}",
                    why="the next row follows directly, so that nothing can come in between",
                    hint='skip other rows: skip="others"; or put it at the end',
                    where=self.where,
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
