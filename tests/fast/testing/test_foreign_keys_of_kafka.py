"""Joins by foreign key that the tests of Kafka Streams work out, change by change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver

KAFKA = hr.kafka("topic", servers="127.0.0.1:1")
Rows = dict[str, tuple[str | None, str | None]]
HOWS = ("inner", "left")


class Joined:
    """Rows with a foreign key, joined with the table that it names."""

    def __init__(self, driver: TestDriver, how: str) -> None:
        self.driver, self.how = driver, how

    def left(self, number: int, key: int | None) -> None:
        self.driver.send("left", [{"id": f"lhs{number}", "l": f"lhsValue{number}", "fk": None if key is None else f"rhs{key}"}])

    def right(self, number: int, value: str = "") -> None:
        self.driver.send("right", [{"fk": f"rhs{number}", "r": value or f"rhsValue{number}"}])

    def rows(self) -> Rows:
        return {row["id"]: (row["fk"], row["r"]) for row in self.driver.rows("out")}

    def changes(self) -> list[tuple[str, str]]:
        """What a reader of the changes is told so far."""
        return [(row["id"], row["op"]) for row in self.driver.rows("changes")]

    def met(self, met: dict[int, int], alone: dict[int, int | None] | None = None) -> Rows:
        """The rows that met one, and in a left join those that did not."""
        found: Rows = {f"lhs{number}": (f"rhs{key}", f"rhsValue{key}") for number, key in met.items()}
        if self.how == "left":
            found |= {f"lhs{number}": (None if key is None else f"rhs{key}", None) for number, key in (alone or {}).items()}
        return found


@contextmanager
def joined(how: str, shards: int = 3) -> Iterator[Joined]:
    app = Declaration("kafka")
    left = app.table("left", "id string, l string, fk string", key="id", source=KAFKA)
    right = app.table("right", "fk string, r string", key="fk", source=KAFKA)
    result = left.join(right, on="fk", how=how, ttl=None)
    app.view("out", result)
    app.sink(result.to_stream(), LogTopic("changes"), name="changes")
    # Joined with its left table again, by the key of both.
    app.view("again", result.join(left.select("id, l as l_again"), on="id", ttl=None))
    with TestDriver(app, shards=shards) as driver:
        yield Joined(driver, how)
        again: list[dict[str, Any]] = driver.rows("again")
        assert [{**row, "l_again": row["l"]} for row in driver.rows("out")] == again


@pytest.mark.parametrize("how", HOWS)
def test_rows_come_and_one_is_deleted(how: str) -> None:
    with joined(how) as tables:
        for number in (1, 2, 3):
            tables.right(number)
        assert tables.rows() == {}
        tables.left(1, 1)
        tables.left(2, 2)
        assert tables.rows() == tables.met({1: 1, 2: 2})
        tables.left(3, 1)
        assert tables.rows() == tables.met({1: 1, 2: 2, 3: 1})
        tables.driver.remove("left", [{"id": "lhs1"}])
        assert tables.rows() == tables.met({2: 2, 3: 1})
        assert tables.changes() == [("lhs1", "insert"), ("lhs2", "insert"), ("lhs3", "insert"), ("lhs1", "delete")]


@pytest.mark.parametrize("how", HOWS)
def test_what_is_referenced_comes_and_is_deleted(how: str) -> None:
    with joined(how) as tables:
        for number, key in ((1, 1), (2, 2), (3, 1)):
            tables.left(number, key)
        assert tables.rows() == tables.met({}, {1: 1, 2: 2, 3: 1})
        tables.right(1)
        assert tables.rows() == tables.met({1: 1, 3: 1}, {2: 2})
        tables.right(2)
        before = tables.changes()
        tables.right(3)
        assert tables.changes() == before
        assert tables.rows() == tables.met({1: 1, 2: 2, 3: 1})
        tables.driver.remove("right", [{"fk": "rhs1"}])
        assert tables.rows() == tables.met({2: 2}, {1: 1, 3: 1})


@pytest.mark.parametrize("how", HOWS)
def test_a_delete_of_what_was_in_no_result_is_not_told(how: str) -> None:
    """Kafka Streams emits a tombstone for an inner join, since it cannot know whether there was a result; here it is known."""
    with joined(how) as tables:
        tables.left(1, 1)
        assert tables.rows() == tables.met({}, {1: 1})
        tables.driver.remove("left", [{"id": "lhs1"}])
        tables.driver.remove("left", [{"id": "lhs1"}])
        assert tables.rows() == {}
        assert tables.changes() == ([("lhs1", "insert"), ("lhs1", "delete")] if how == "left" else [])


@pytest.mark.parametrize("how", HOWS)
def test_a_row_moves_between_keys_that_exist_and_that_do_not(how: str) -> None:
    """In an inner join, Kafka Streams emits a tombstone for each move between keys that do not exist; here there is nothing to tell."""
    with joined(how) as tables:
        for key in (1, 2, 3):
            tables.left(1, key)
            assert tables.rows() == tables.met({}, {1: key})
        before = tables.changes()
        tables.right(1)
        assert tables.changes() == before
        assert before == ([("lhs1", "insert"), ("lhs1", "update"), ("lhs1", "update")] if how == "left" else [])
        tables.left(1, 1)
        assert tables.rows() == tables.met({1: 1})
        tables.left(1, 2)
        assert tables.rows() == tables.met({}, {1: 2})


@pytest.mark.parametrize("how", HOWS)
def test_a_change_of_what_is_not_referenced_any_more_changes_nothing(how: str) -> None:
    with joined(how) as tables:
        tables.right(1)
        tables.right(2)
        tables.left(1, 1)
        assert tables.rows() == tables.met({1: 1})
        tables.left(1, 2)
        before = tables.changes()
        tables.right(1, "rhsValue1Delta")
        assert tables.changes() == before
        assert tables.rows() == tables.met({1: 2})


@pytest.mark.parametrize("how", HOWS)
def test_a_foreign_key_that_is_or_becomes_null_matches_nothing(how: str) -> None:
    with joined(how) as tables:
        tables.left(1, None)
        assert tables.rows() == tables.met({}, {1: None})
        tables.right(1)
        tables.left(1, 1)
        assert tables.rows() == tables.met({1: 1})
        tables.left(1, None)
        assert tables.rows() == tables.met({}, {1: None})
