"""The step of a plan that keeps the best rows of results that change."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.core.durations import spelled
from headrace.plan.aggregation import GroupAggregate, WindowAggregate
from headrace.plan.nodes import Memory, Node, TableStep
from headrace.plan.steps import Select, Where
from headrace.plan.tables import ToTable
from headrace.plan.windows import Count, Global, Session


@dataclass(frozen=True)
class Top(TableStep):
    """The `count` rows with the largest `score`, of everything or of each value of `per`.

    Those of each shard come first (`shared`), so that few rows have to meet. With `closes` a group is final when its window is.
    """

    count: int
    score: str
    per: tuple[str, ...]
    closes: bool
    shared: bool = False

    @property
    def beside(self) -> str:
        at_hand = isinstance(self.input, GroupAggregate | ToTable) and all(result.expression.fused for result in self.input.results)
        return self.input.name if self.shared and at_hand else ""

    @property
    def does(self) -> str:
        per = f" per {', '.join(self.per)}" if self.per else ""
        return f"top {self.count} by {self.score}{per}{' of each shard' if self.shared else ''}{' at hand' if self.beside else ''}"

    @property
    def memory(self) -> Memory:
        if self.beside:
            return Memory(f"the best rows, up to {4 * self.count + 32} of each group and shard", f"as many as {self.beside!r} keeps")
        rows = "every row" if self.shared else "the best rows of each shard"
        if not self.closes:
            return Memory(rows, "as long as it is in the table before it")
        return Memory(rows, f"until its window is past correction, {spelled(self.lateness)} after its end")


def window_of(node: Node) -> tuple[str, ...]:
    """The columns that tell the windows of results apart, all of which end at one time; none where there are no such windows."""
    shown = set(node.columns.names)
    while isinstance(node, Where | Select | Top):
        node = node.input
    if not isinstance(node, WindowAggregate) or isinstance(node.window, Session | Count | Global):
        return ()
    return node.window.identity if set(node.window.identity) <= shown else ()
