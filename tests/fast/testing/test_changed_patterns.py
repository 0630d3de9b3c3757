"""A pattern that changes while its job goes on: what is kept is as from the beginning, and what is not is said part by part."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.plan.evolution.comparison import Decisions, compared
from headrace.plan.evolution.described import described
from headrace.testing.driver import TestDriver
from tests.support.streams import at

BEFORE: dict[str, Any] = {
    "by": "card", "pattern": "A B+", "define": {"A": "amount > 5", "B": "amount > 1"}, "within": "10 seconds",
    "where": "sum(amount) > 5", "measures": {"total": "sum(amount)", "n": "count(*)"},
}  # fmt: skip


def app(**options: Any) -> Declaration:
    made = Declaration("shop")
    schema = "card string, amount int, other int, at timestamp"
    stream = made.stream("payments", schema, key="card", time="at", watermark=bounded("0s"))
    made.sink(stream.match(**{**BEFORE, **options}), LogTopic("out"), name="out")
    return made


def changes(before: dict[str, Any], after: dict[str, Any]) -> Decisions:
    return compared(described(app(**before).plan()), described(app(**after).plan()))


def match_of(found: Decisions) -> str:
    return next(str(decision) for decision in found.decisions if decision.name == "out/match")


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"define": {"A": "amount > 6", "B": "amount > 1"}}, "the condition of A changed"),
        ({"define": {"A": "amount > 5"}}, "the condition of B is gone"),
        ({"pattern": "A B+ C", "define": {**BEFORE["define"], "C": "amount > 3"}}, "the pattern changed; the condition of C is new"),
        ({"pattern": "A B*"}, "the pattern changed"),
        ({"within": "20 seconds"}, "within changed"),
        ({"skip": "others"}, "skip changed"),
        ({"after": "next row", "where": None}, "after changed"),
        ({"order": "amount"}, "order changed"),
        ({"where": "sum(amount) > 6"}, "where (it decides where the next match begins) changed"),
        ({"measures": {"total": "sum(amount)", "most": "max(other)"}}, "column other of the rows it keeps is new"),
        ({"measures": {"no": "match_number()"}}, "the count of matches for match_number() is new"),
        ({"by": "other"}, "its key changed; column other of the rows it keeps is new"),
    ],
)
def test_a_change_that_needs_a_rebuild_is_named(after: dict[str, Any], said: str) -> None:
    found = changes({}, after)
    assert found.status == "refused"
    assert said in match_of(found)
    assert "keeps whole" not in match_of(found)


def test_blanks_and_case_in_a_pattern_change_nothing() -> None:
    spaced = {
        "pattern": " A  B+", "define": {"B": "AMOUNT>1", "A": "amount  > 5"}, "where": "SUM(amount)>5", "within": "10s",
        "measures": {"total": "Sum( amount )", "n": "COUNT(*)"},
    }  # fmt: skip
    assert changes({}, spaced).status == "same"


ROWS = [("c", 9, 0), ("c", 3, 1), ("d", 8, 1), ("c", 4, 2), ("c", 7, 3), ("d", 2, 4), ("c", 2, 5), ("c", 8, 7), ("c", 2, 8), ("d", 1, 9)]


def rows(part: slice) -> list[dict[str, Any]]:
    return [{"card": card, "amount": amount, "at": at(second)} for card, amount, second in ROWS[part]]


def results(found: TestDriver) -> list[str]:
    found.send("payments", rows(slice(5, None)))
    found.end()
    return list(map(repr, found.rows("out")))


@pytest.mark.parametrize("shards", [None, 3])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"measures": {"most": "max(amount)", "first": "first(B.amount)"}}),
        ({"measures": {"n": "match_number()"}}, {"measures": {"m": "match_number() + 1"}}),
        ({"after": "next row"}, {"after": "next row", "where": "sum(amount) > 12"}),
        ({"after": "next row", "where": "count(*) > 2"}, {"after": "next row", "where": None, "measures": {"n": "count(*)"}}),
        ({"rows": "all"}, {"rows": "all", "measures": {"so_far": "count(*)", "is": "classifier()"}}),
    ],
)
def test_later_matches_of_a_changed_pattern_are_those_of_a_run_from_the_beginning(
    before: dict[str, Any], after: dict[str, Any], shards: int | None
) -> None:
    with TestDriver(app(**before)) as driver, TestDriver(app(**after)) as scratch:
        for one in (driver, scratch):
            one.send("payments", rows(slice(0, 5)))
        earlier = len(driver.rows("out"))
        found = driver.evolve(app(**after), shards=shards)
        assert "earlier results stay as they are" in str(found)
        late, wanted = results(driver)[earlier:], results(scratch)
        assert late
        assert set(late) <= set(wanted)
        # Another `where` may accept what the former one had turned down, and matches that were emitted stay.
        assert before.get("after") == "next row" or sorted(late) == sorted(wanted[earlier:])
