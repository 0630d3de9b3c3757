"""Exchange before keyed outputs: the changes of one row meet on one shard, in order, before a view or sink sees them.

A row whose shard depends on more than its key moves between shards when it changes, for example by a foreign key: one shard retracts it,
another adds it, and two tasks would write to the output in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from headrace.operators.changes import OP, added, as_upserts
from headrace.operators.columns import ALL, ROW
from headrace.operators.contract import Arrived, Entered, Exported, Made, Outcome, Size
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.store import Store
from headrace.plan.expressions.terms import Field
from headrace.plan.nodes import Node
from headrace.plan.plan import Output
from headrace.plan.steps import Select, Union

# Stands for a column that determines the shard of rows and is no longer among their columns.
_LOST = "~"


def exchange_name(output: Output) -> str:
    """The step that an output gets its rows from, where there is an exchange before it."""
    return f"{output.name}.exchange"


def scattered(node: Node, key: tuple[str, ...], made: Mapping[str, Made]) -> bool:
    """Whether the changes of one row of a node, identified by `key`, may come from several shards."""
    found = _colocated(node, made) if node.changes and key else None
    return found is not None and not set(found) <= set(key)


def _colocated(node: Node, made: Mapping[str, Made]) -> tuple[str, ...] | None:
    """The columns that determine the shard of a node's rows; None if rows are where they were read."""
    if node.stateful and not node.colocated_with:
        (by, *_) = [port.entrance.by for port in made[node.name].ports.values() if not port.broadcast]
        return tuple(name for name in by if name != ALL)
    before = [_colocated(one, made) for one in node.inputs]
    if isinstance(node, Union):
        if all(found is None for found in before):
            return None
        return before[0] if len(set(before)) == 1 else (_LOST,)
    found = before[0] if before else None
    if found is not None and isinstance(node, Select):
        taken = {typed.term.name: name for name, typed in reversed(node.made) if isinstance(typed.term, Field)}
        return tuple(taken.get(name, _LOST) for name in found)
    return found


@dataclass(frozen=True)
class ExchangeSpec:
    """The last change of each row of a shard; `by` identifies rows."""

    by: tuple[str, ...]

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """The net effect of the changes of one shard: in the end at most one shard has a row of a key."""
        changes = records.drop(ROW, strict=False)
        return Entered(as_upserts(changes if OP in changes.columns else added(changes), self.by), records.height)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> Exchange:
        return Exchange(self)


class Exchange:
    """An operator without state: it passes each row on, once for each key."""

    def __init__(self, spec: ExchangeSpec) -> None:
        self._spec = spec

    @property
    def size(self) -> Size:
        return Size()

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        if not arrived.rows:
            return Outcome()
        return Outcome([as_upserts(pl.concat(arrived.rows, how="diagonal").sort(OP, maintain_order=True), self._spec.by)])

    def manifest(self) -> str:
        return ""

    def restore(self, manifest: str | None, store: Store) -> None:
        """There is nothing to restore."""

    def export(self) -> Exported:
        return Exported()

    def absorb(self, moved: Exported, store: Store) -> None:
        """There is nothing to absorb."""
