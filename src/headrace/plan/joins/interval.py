"""The join of two streams within a stretch of event time around each record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.plan.expressions import Typed
from headrace.plan.joins.join import INNER, KINDS, LEFT, Join
from headrace.plan.nodes import Node, StateSummary, facts_first, timed_first

ALL_MATCHES, FIRST, LAST = "all", "first", "last"


@dataclass(frozen=True)
class IntervalJoin(Join):
    """Rows of one key whose right time is at most `before` before the left one and at most `after` after it.

    `pick` takes the first or last of the matches of a left row, by the right time. `condition` is over the columns of a result.
    """

    before: timedelta
    after: timedelta
    pick: str = ALL_MATCHES
    condition: Typed | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_hows(KINDS)
        self._refuse_picks()
        self._refuse_times()
        self._refuse_changes()
        if self.condition is not None and not self.condition.fused:
            raise PlanError(
                f"where= of {self.said} needs Spark: {self.condition.reason}",
                why="which rows meet is known only while the join runs",
                hint="use expressions that need no Spark, or filter the result of an inner join: .where(...)",
                where=self.where,
            )

    @property
    def left_waits(self) -> bool:
        """Whether left rows wait until all their matches are known."""
        return self.sides.keeps_left or self.pick != ALL_MATCHES

    @property
    def waits(self) -> bool:
        return self.left_waits or self.sides.keeps_right

    @property
    def judges_lateness(self) -> bool:
        return True

    @property
    def lateness(self) -> timedelta:
        """A result has the later time of its two rows; one that waits for matches comes as much later."""
        waits = [self.after] if self.left_waits else []
        waits += [self.before] if self.sides.keeps_right else []
        return super().lateness + max(waits, default=timedelta(0))

    @property
    def keys(self) -> tuple[str, ...]:
        """Those of both sides; none in a full join whose left row without a match may have the key of a right one.

        Columns that are compared do not tell the two apart, nor do others that may be null: the missing side has nulls there, too.
        """
        sides = self.sides
        left, right = sides.left.keys, sides.right.keys
        found = tuple(dict.fromkeys((*left, *(sides.shown[name] for name in right)))) if left and right else ()
        told_apart = any(_never_null(sides.left, name) for name in left if name not in sides.left_on) or any(
            _never_null(sides.right, name) for name in right if name not in sides.right_on
        )
        return () if sides.keeps_left and sides.keeps_right and not told_apart else found

    @property
    def does(self) -> str:
        picked = f", {self.pick} match" if self.pick != ALL_MATCHES else ""
        where = f", where {self.condition.words}" if self.condition is not None else ""
        return f"{self.sides.words}, right from {spelled(self.before)} before to {spelled(self.after)} after{picked}{where}"

    @property
    def kept(self) -> tuple[timedelta, timedelta]:
        """How far behind the watermark a left row and a right one may still be asked for.

        A row meets those of the other side that come later; where these wait, it is looked up once more when they are settled.
        """
        left, right = self.after + self.sides.right.lateness, self.before + self.sides.left.lateness
        left_again, right_again = self.after + right, self.before + left
        return max(left, left_again) if self.sides.keeps_right else left, max(right, right_again) if self.left_waits else right

    @property
    def state_parts(self) -> dict[str, Any]:
        return super().state_parts | {"within": (self.before, self.after), "pick": self.pick, "where": self.condition}

    @property
    def state_summary(self) -> StateSummary:
        left, right = map(spelled, self.kept)
        return StateSummary("the rows of both sides", f"left {left}, right {right} after a row's time")

    def _refuse_picks(self) -> None:
        if self.pick not in (ALL_MATCHES, FIRST, LAST):
            raise PlanError(f"pick={self.pick!r} is not known", hint='"all", "first" or "last" match of a left row', where=self.where)
        if self.pick != ALL_MATCHES and self.sides.how not in (INNER, LEFT):
            raise PlanError(
                f"pick={self.pick!r} with how={self.sides.how!r}",
                why="one match is chosen for each left row, and a right row that was not chosen is neither matched nor unmatched",
                hint='how="inner" or "left", or pick="all"',
                where=self.where,
            )

    def _refuse_times(self) -> None:
        if min(self.before, self.after) < timedelta(0):
            raise PlanError(
                f"within of {self.said} is negative", hint='give how far before and after: within=("0s", "30 minutes")', where=self.where
            )
        untimed = next((node for node in self.inputs if not node.watermarked), None)
        if untimed is not None:
            raise PlanError(
                f"{self.said}: {untimed.name!r} has no watermark",
                why="rows that wait for a match could never be removed",
                hint="join a stream with the rows of the table: stream.join(table, on=...)" if untimed.changes else timed_first(untimed),
                where=self.where,
            )

    def _refuse_changes(self) -> None:
        changing = next((node for node in self.inputs if node.revises), None)
        if changing is not None:
            raise _changing(changing, self)


def _never_null(node: Node, name: str) -> bool:
    """Whether a column has a value in every row: it is declared so, or identifies the window of a row."""
    if not node.columns.field(name).nullable:
        return True
    if node.windowing is not None:
        return name in node.windowing.identity
    if not node.passes_windows:
        return False
    (before,) = node.inputs
    return any(_never_null(before, former) for former in before.columns.names if node.passed_as(former) == name)


def _changing(node: Node, join: Join) -> PlanError:
    first = _first_that_changes(node)
    # Without its triggers, a window behind late results would still correct its own.
    triggers = first.panes.triggers if first.panes is not None and not any(before.lateness for before in first.inputs) else ()
    left_out = [f"leave out {' and '.join(f'{name}=' for name in triggers)} of {first.name!r}"] if triggers else []
    tables = "join two tables: .to_table(key) of each, then .join(...)"
    return PlanError(
        f"{join.said} within a time: results of {node.name!r} are replaced or retracted later",
        why="what they were joined with may be forgotten by then",
        hint=", ".join([facts_first(node), *left_out, f"or {tables}"]),
        where=join.where,
    )


def _first_that_changes(node: Node) -> Node:
    """The earliest step whose results are replaced or retracted, of those that a node reads them from."""
    before = next((one for one in node.followed if one.revises), None)
    return node if before is None else _first_that_changes(before)
