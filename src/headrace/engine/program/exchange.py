"""Exchange before keyed outputs: the changes of one row meet on one shard, in order, before a view or sink sees them.

A row whose shard depends on more than its key moves between shards when it changes, for example by a foreign key: one shard retracts it,
another adds it, and two tasks would write to the output in any order. `operators/tables/meeting.py` is the operator.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.operators.columns import ALL
from headrace.operators.contract import Made
from headrace.plan.nodes import Node
from headrace.plan.plan import Output

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
    before = {_colocated(one, made) for one in node.inputs}
    if len(before) > 1:
        return (_LOST,)
    found = next(iter(before), None)
    return None if found is None else tuple(node.passed_as(name) or _LOST for name in found)
