"""The join of two tables, kept up to date row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headrace.core.errors import PlanError
from headrace.plan.joins.join import KINDS, Join
from headrace.plan.nodes import Node, StateSummary, timed_first


@dataclass(frozen=True)
class TableJoin(Join):
    """The rows of two tables with equal columns, by key, by foreign key or many to many. A change of either retracts what it replaces."""

    tabular: ClassVar[bool] = True

    unbounded: bool
    """Whether it was said that rows may be kept forever."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_hows(KINDS)
        endless = next((node for node in self.inputs if not _expires(node)), None)
        if endless is not None and not self.unbounded:
            raise PlanError(
                f"{self.said} has no ttl, and rows of {endless.name!r} are kept forever",
                why="its state would grow with every new key, forever",
                hint=f"{_bounded(endless)}, or spell out ttl=None if the keys are few",
                where=self.where,
            )

    @property
    def changes(self) -> bool:
        return True

    @property
    def restates(self) -> bool:
        return False

    @property
    def moves(self) -> bool:
        return not set(self.sides.left_on) <= set(self.keys)

    @property
    def snapshots(self) -> bool:
        return True

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of both tables, without those that the key of the other decides."""
        sides = self.sides
        left, right = [*sides.left.keys], [sides.shown[name] for name in sides.right.keys]
        if not sides.keeps_right:
            right = [name for name in right if name not in sides.left_on]
        elif not sides.keeps_left:
            left = [name for name in left if name not in sides.left_on]
        elif set(left) | set(right) <= set(sides.left_on):
            # Rows of both tables with one key and no match differ in what else would have to be equal.
            right = [*right, *sides.left_on]
        return tuple(dict.fromkeys((*left, *right)))

    @property
    def does(self) -> str:
        return f"{self.sides.words}, of tables"

    @property
    def state_summary(self) -> StateSummary:
        return StateSummary("the rows of both tables", " and ".join(f"as many as {node.name!r} has" for node in self.inputs))


def is_table(node: Node) -> bool:
    """Whether rows of a node are replaced and retracted by its key."""
    return node.changes and bool(node.keys)


def _bounded(node: Node) -> str:
    """How rows of a table leave after some time, in words."""
    bound = 'bound the table: .to_table(key, ttl="30 days")'
    return bound if node.watermarked else f"{bound}, for which {timed_first(node)}"


def _expires(node: Node) -> bool:
    """Whether every row is retracted some time after its own; results of windows stay, for one."""
    if node.tabular:
        return node.settles is not None
    return bool(node.followed) and all(_expires(before) for before in node.followed)
