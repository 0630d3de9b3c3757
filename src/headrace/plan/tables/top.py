"""The step of a plan that keeps the best rows of results that change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from headrace.core.durations import spelled
from headrace.plan.nodes import Node, StateSummary, TableStep


@dataclass(frozen=True)
class Top(TableStep):
    """The `count` rows with the largest `score`, of everything or of each value of `per`.

    The best rows of each shard are found first (`shared`), so that few rows are shuffled. With `closes`, a group is final when its window
    is.
    """

    passes_windows: ClassVar[bool] = True

    count: int
    score: str
    per: tuple[str, ...]
    closes: bool
    shared: bool = False
    rank: str = ""
    """The column for the place of a row in its group, from 1; empty where it is not asked for."""

    @property
    def keyed_by(self) -> tuple[str, ...]:
        return self.per

    @property
    def colocated_with(self) -> str:
        at_hand = self.input.at_hand and all(result.expression.fused for result in self.input.results)
        return self.input.name if self.shared and at_hand else ""

    @property
    def expires_with_window(self) -> bool:
        return self.closes

    @property
    def keeps_all(self) -> str:
        return f"top {self.count}" if self.shared else ""

    @property
    def moves(self) -> bool:
        return not set(self.per) <= set(self.keys)

    @property
    def does(self) -> str:
        per = f" per {', '.join(self.per)}" if self.per else ""
        place = f"{' of each shard' if self.shared else ''}{' at hand' if self.colocated_with else ''}"
        return f"top {self.count} by {self.score}{per}{place}{f', its place in {self.rank}' if self.rank else ''}"

    @property
    def snapshots(self) -> bool:
        """Rows of windows that are past correction are not kept."""
        return not self.shared and not self.closes

    @property
    def state_summary(self) -> StateSummary:
        if self.colocated_with:
            return StateSummary(
                f"the best rows, up to {4 * self.count + 32} of each group and shard", f"as many as {self.colocated_with!r} keeps"
            )
        rows = "every row" if self.shared else "the best rows of each shard"
        if not self.closes:
            return StateSummary(rows, "as long as it is in the table before it")
        return StateSummary(rows, f"until its window is past correction, {spelled(self.lateness)} after its end")


@dataclass(frozen=True)
class TopOfFacts(TableStep):
    """The `count` records with the largest `score` among facts, in their places; only these are kept, since a fact is never retracted."""

    tabular: ClassVar[bool] = True
    counts_each: ClassVar[bool] = True

    count: int
    score: str
    per: tuple[str, ...]
    rank: str

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.per, self.rank)

    @property
    def keyed_by(self) -> tuple[str, ...]:
        return self.per

    @property
    def snapshots(self) -> bool:
        return True

    @property
    def settles(self) -> timedelta | None:
        return None

    @property
    def does(self) -> str:
        per = f" per {', '.join(self.per)}" if self.per else ""
        return f"top {self.count} facts by {self.score}{per}, the place in {self.rank}"

    @property
    def state_summary(self) -> StateSummary:
        kept = f"the {self.count} best records{' of each group' if self.per else ''}"
        return StateSummary(kept, "none: as many as there are groups" if self.per else f"{self.count} records")


def window_of(node: Node) -> tuple[str, ...]:
    """The columns that identify the windows of results, which all end at one time; none where there are no such windows."""
    shown = set(node.columns.names)
    while node.passes_windows:
        (node,) = node.inputs
    window = node.windowing
    if window is None or not window.aligned:
        return ()
    return window.identity if set(window.identity) <= shown else ()
