"""The join of a stream with the version of a table that was valid at a moment of each record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace.core.columns.schema import type_name
from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.plan.joins.join import INNER, LEFT, Join
from headrace.plan.joins.lookup import refuse_another_key
from headrace.plan.nodes import Node, StateSummary, facts_first, timed_first

# A record is corrected when the watermark is behind the moment by this much.
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class AsOfJoin(Join):
    """Each record with the version of its key that is valid at the moment in the column `moment`, up to `reach` behind the watermark.

    The right side is the stream that `table` has the latest records of: versions that come late are none of the table's changes.
    """

    table: Node
    moment: str
    history: timedelta
    early: tuple[str, ...] = ()
    """The columns that identify records that are answered at once, and corrected when the watermark has passed the moment."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_hows((INNER, LEFT))
        refuse_another_key(self, self.table)
        self._refuse_moments()
        untimed = next((node for node in self.inputs if not node.watermarked), None)
        if untimed is not None:
            raise PlanError(
                f"{self.said} as of a time: {untimed.name!r} has no watermark",
                why="whether an earlier version may still come would never be known",
                hint=timed_first(untimed),
                where=self.where,
            )
        left = self.sides.left
        if left.revises:
            raise PlanError(
                f"{self.said} as of a time: results of {left.name!r} are replaced or retracted later",
                why="a result that is retracted may be beyond the history by then",
                hint=facts_first(left),
                where=self.where,
            )
        self._refuse_records_that_look_alike()

    @property
    def said(self) -> str:
        return f"the join of {self.sides.left.name!r} and {self.table.name!r}"

    @property
    def followed(self) -> tuple[Node, ...]:
        return (self.sides.left,)

    @property
    def changes(self) -> bool:
        return bool(self.early)

    @property
    def settles(self) -> timedelta | None:
        return self.lateness + _TICK

    @property
    def waits(self) -> bool:
        return True

    @property
    def lateness(self) -> timedelta:
        """A record waits until no earlier version may come."""
        return max(node.lateness for node in self.inputs)

    @property
    def reach(self) -> timedelta:
        """How far behind the watermark a moment may be: `history`, and what the records themselves may be behind it."""
        return self.history + self.sides.left.lateness

    @property
    def late_because(self) -> str:
        """Why a record is late whose moment is beyond the reach."""
        kept = f"are no longer kept (history of {spelled(self.history)})"
        return f"the versions of {self.table.name!r} at its {self.moment!r} {kept}: give as_of() a longer history"

    @property
    def keys(self) -> tuple[str, ...]:
        return self.early or self.sides.left.keys

    @property
    def does(self) -> str:
        ttl = f", each for {spelled(self.table.expires_after)}" if self.table.expires_after is not None else ""
        early = ", answered at once and corrected" if self.early else ""
        return f"{self.sides.words}, version valid at {self.moment}{ttl}, history {spelled(self.history)}{early}"

    @property
    def state_parts(self) -> dict[str, Any]:
        asked = {"as_of": self.moment, "history": self.history, "emit": self.early}
        return super().state_parts | asked | {"the ttl of its table": self.table.expires_after}

    @property
    def state_summary(self) -> StateSummary:
        kept, ttl = self.reach + self.sides.right.lateness, self.table.expires_after
        last = "the last of a key forever" if ttl is None else f"and {spelled(kept + ttl)} after their own time at most"
        return StateSummary(
            f"records that wait for the watermark{', each with its early answer' if self.early else ''}, and the versions of each key",
            f"versions until {spelled(kept)} after the next one, {last}",
        )

    def _refuse_records_that_look_alike(self) -> None:
        if self.early and not set(self.early) - set(self.sides.left_on):
            raise PlanError(
                f"early answers of {self.said} by {', '.join(self.early)}, which is the key of the table",
                why="many records have one version, and an answer that is corrected must be found among them",
                hint='name the columns that identify a record: emit(early=True, key="id")',
                where=self.where,
            )

    def _refuse_moments(self) -> None:
        kind = self.sides.left.columns.field(self.moment).type
        if not pa.types.is_timestamp(kind):
            raise PlanError(
                f"as of {self.moment!r}, which is {type_name(kind)}",
                why="a version is looked up by a moment",
                hint=f"name a column of type timestamp, or make one: with_columns({self.moment}='cast({self.moment} as timestamp)')",
                where=self.where,
            )
        if self.history < timedelta(0):
            raise PlanError(f"history of {self.said} is negative", hint='history="7 days"', where=self.where)


def versions_of(table: Node, at: str | None) -> Node:
    """The stream of facts whose latest records a table has."""
    if table.versions is not None:
        return table.versions
    raise PlanError(
        f"as_of() of {table.name!r}, whose versions are not facts of a stream",
        why="a version that arrives out of order does not change the table, and would be missing",
        hint="use the table itself, and put other steps before it: stream.where(...).to_table(key).as_of(...)",
        where=at,
    )
