"""The join of a stream with the current rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.plan.joins.join import INNER, LEFT, Join
from headrace.plan.nodes import Node, StateSummary, facts_first

SNAPSHOT = "snapshot"


@dataclass(frozen=True)
class TableLookup(Join):
    """Each record of a stream with the row that the table has for its key in that epoch. Later changes correct nothing.

    `broadcast`: every shard has the whole table. `wait`: the stream is not read before the table is, to where it was when the job started.
    """

    broadcast: bool = False
    wait: str | None = SNAPSHOT

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_hows((INNER, LEFT))
        if self.wait not in (SNAPSHOT, None):
            raise PlanError(
                f"wait={self.wait!r} of {self.said} is not known",
                hint='"snapshot": the stream waits until the table is read to where it was when the job started; None: it does not',
                where=self.where,
            )
        refuse_another_key(self, self.sides.right)
        if self.sides.left.revises:
            raise PlanError(
                f"{self.said}: results of {self.sides.left.name!r} are replaced or retracted later",
                why="a retraction could be joined with another row of the table than the result that it retracts",
                hint=f"{facts_first(self.sides.left)}, or make it a table: .to_table(key)",
                where=self.where,
            )

    @property
    def spread_by(self) -> tuple[str, ...]:
        """With the whole table on every shard, what most records ask for makes no shard slow. Records of one key stay in their order."""
        if not self.broadcast:
            return ()
        left = self.sides.left
        if left.order_key and set(left.order_key) <= set(left.columns.names):
            return left.order_key
        # Floats that records are spread by are changed to one form of zero.
        kept = [field.name for field in left.columns if not (pa.types.is_nested(field.type) or pa.types.is_floating(field.type))]
        return tuple(kept) or self.sides.left_on

    @property
    def awaited(self) -> tuple[Node, ...]:
        return (self.sides.right,) if self.wait == SNAPSHOT else ()

    @property
    def followed(self) -> tuple[Node, ...]:
        return (self.sides.left,)

    @property
    def keys(self) -> tuple[str, ...]:
        return self.sides.left.keys

    @property
    def does(self) -> str:
        return f"{self.sides.words}, current row{', the whole table on every shard' if self.broadcast else ''}"

    @property
    def state_parts(self) -> dict[str, Any]:
        # `wait` is about the first start of a job.
        return super().state_parts | {"broadcast": self.broadcast}

    @property
    def state_summary(self) -> StateSummary:
        spread = " on every shard" if self.broadcast else ""
        return StateSummary("a copy of the table", f"as many rows{spread} as {self.sides.right.name!r} has")


def refuse_another_key(join: Join, table: Node) -> None:
    """A table that may have several rows for what is asked, or is not told apart by it."""
    if set(join.sides.right_on) != set(table.keys):
        raise PlanError(
            f"{join.said} on {', '.join(join.sides.right_on)}: the key of the table is {', '.join(table.keys) or 'not known'}",
            why="a record is joined with the one row of its key",
            hint=f"join on the key, or make a table of what is asked for: .to_table({list(join.sides.right_on)!r})",
            where=join.where,
        )
