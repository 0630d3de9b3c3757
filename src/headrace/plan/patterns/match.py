"""The step of a plan that finds patterns among the rows of each key, in the order of event time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.plan.nodes import FactsOnly, KeyedStep, StateSummary
from headrace.plan.patterns.formulas import NUMBER, Formula
from headrace.plan.patterns.misplaced import refuse_misplaced
from headrace.plan.patterns.parts import Absent, Beginning, PatternPart, Variable

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
        self._refuse_no_key()
        self._refuse_no_time()
        refuse_misplaced(self.pattern.root, self.pattern.text, self.where, relaxed=self.pattern.relaxed)

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The conditions of variables, the measures and `where`."""
        where = () if self.pattern.where is None else (self.pattern.where,)
        return (*(one for _, one in self.pattern.define), *(one for _, one in self.measures), *where)

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns of rows that it keeps: all that it shows or reads."""
        names = self.input.columns.names
        if self.rows == ALL:
            return tuple(names)
        read = {name.lower() for formula in self.formulas for name in formula.columns} | {name.lower() for name in (*self.by, *self.order)}
        return tuple(name for name in names if name.lower() in read)

    @property
    def numbered(self) -> bool:
        """Whether it counts the matches of each key."""
        return any(value.kind == NUMBER for _, formula in self.measures for value in formula.values)

    @property
    def state_parts(self) -> dict[str, Any]:
        pattern = self.pattern
        parts: dict[str, Any] = {
            "by": self.by, "the pattern": pattern.root, "skip": pattern.relaxed, "within": pattern.within,
            "after": [self.after.kind, self.after.variable], "order": self.order,
        }  # fmt: skip
        parts |= {f"the condition of {name}": formula.content for name, formula in pattern.define}
        parts |= {f"column {name} of the rows it keeps": True for name in self.kept}
        parts |= {"the count of matches for match_number()": True} if self.numbered else {}
        if not self._searches_apart:
            parts["where (it decides where the next match begins)"] = self._where
        return parts

    @property
    def result_parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"measures": [[name, formula.content] for name, formula in self.measures], "rows": self.rows}
        return parts | {"where": self._where} if self._searches_apart else parts

    @property
    def _searches_apart(self) -> bool:
        """Whether no search depends on earlier matches: another `where` judges those that are open as it would from the beginning."""
        return self.after.kind == NEXT_ROW and not self.numbered

    @property
    def _where(self) -> Any:
        return None if self.pattern.where is None else self.pattern.where.content

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
