"""Sources that wait for others, by the steps between them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

from headrace.core.errors import PlanError
from headrace.plan.nodes import Node, Source
from headrace.plan.waits import waits

COLUMNS = pa.schema([("id", pa.int64())])


@dataclass(frozen=True)
class Meeting(Node):
    """A step whose left side waits for its right side."""

    left: Node
    right: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def awaited(self) -> tuple[Node, ...]:
        return (self.right,)


def source(name: str) -> Source:
    return Source(name, COLUMNS, None, ("id",), None, None)


def met(left: Node, right: Node) -> Meeting:
    return Meeting(f"{left.name}-{right.name}", COLUMNS, "app.py:3", left, right)


ORDERS, USERS, ITEMS = map(source, ("orders", "users", "items"))


def test_a_source_waits_for_all_that_the_tables_it_meets_are_made_of() -> None:
    users = met(USERS, ITEMS)
    assert waits([ORDERS, USERS, ITEMS, users, met(ORDERS, users)]) == {
        "users": frozenset({"items"}),
        "orders": frozenset({"users", "items"}),
    }


def test_a_stream_that_meets_a_table_of_its_own_does_not_wait() -> None:
    assert waits([ORDERS, met(ORDERS, ORDERS), met(met(ORDERS, USERS), ORDERS)]) == {"users": frozenset({"orders"})}


def test_sources_that_wait_in_a_circle_are_refused() -> None:
    with pytest.raises(PlanError, match=r"'items' waits for 'orders', which waits for 'items'") as refused:
        waits([met(ORDERS, USERS), met(USERS, ITEMS), met(ITEMS, ORDERS)])
    assert refused.value.where == "app.py:3"
