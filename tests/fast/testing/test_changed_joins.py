"""A changed app with joins: the state of a join is kept unless the join itself has changed, and the reason names what the user wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded
from headrace.core.errors import PlanError
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at

Two = tuple[Stream, Stream]


def streams(app: Declaration) -> Two:
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("0s", idle="1 day")}
    left = app.stream("a", "id int, k string, n int, at timestamp", **timed)
    return left, app.stream("b", "rid int, k string, n int, at timestamp", **timed)


def within(both: Two, **given: Any) -> Stream:
    return both[0].join_within(both[1], **{"on": "k", "within": "5s", "how": "left"} | given)


def as_of(both: Two, *, ttl: str | None = None, history: str = "1 hour", early: bool = False, **given: Any) -> Any:
    versions = both[1].to_table(["k", "n"], ttl=ttl).as_of("at", history=history)
    joined: Any = both[0].join(versions, **{"on": ["k", "n"], "how": "left"} | given)
    return joined.emit(early=True, key="id") if early else joined


def looked_up(both: Two, **given: Any) -> Stream:
    return both[0].join(both[1].to_table(["k", "n"]), **{"on": ["k", "n"], "how": "left"} | given)


def tables(both: Two, *, expires: str | None = None, **given: Any) -> Stream:
    left, right = both[0].to_table("id", ttl=expires), both[1].to_table("rid", ttl=expires)
    return left.join(right, **{"on": "k", "how": "left"} | ({} if expires else {"ttl": None}) | given)


JOINS: dict[str, Callable[..., Stream]] = {"within": within, "as of": as_of, "looked up": looked_up, "tables": tables}


def version(join: str, before: Callable[[Two], Two] = lambda both: both, **given: Any) -> Declaration:
    app = Declaration("changed")
    joined = JOINS[join](before(streams(app)), **given)
    if joined.node.changes:
        app.view("out", joined)
    else:
        app.sink(joined, LogTopic("out"), name="out")
    return app


@pytest.mark.parametrize(
    ("join", "given", "changed"),
    [
        ("within", {"how": "inner"}, "how"),
        ("within", {"on": {"k": "k", "n": "n"}}, "on"),
        ("within", {"within": ("5s", "4s")}, "within"),
        ("within", {"pick": "last"}, "pick"),
        ("within", {"where": "n < n_right"}, "where"),
        ("within", {"suffix": "_b"}, "suffix"),
        ("as of", {"history": "2 hours"}, "history"),
        ("as of", {"early": True}, "emit"),
        ("as of", {"ttl": "1 hour"}, "the ttl of its table"),
        ("as of", {"how": "inner"}, "how"),
        ("looked up", {"broadcast": True}, "broadcast"),
        ("looked up", {"how": "inner"}, "how"),
        ("tables", {"how": "full"}, "how"),
        ("tables", {"on": ["k", "n"]}, "on"),
    ],
)
def test_a_join_that_is_changed_is_rebuilt_and_the_reason_names_the_argument(join: str, given: dict[str, Any], changed: str) -> None:
    with TestDriver(version(join)) as driver, pytest.raises(PlanError) as refused:
        driver.evolve(version(join, **given))
    assert f"rebuild step out/join: {changed} changed" in str(refused.value).splitlines()


@pytest.mark.parametrize(
    ("join", "before", "after"),
    [("looked up", {}, {"wait": None}), ("tables", {"expires": "1 hour"}, {"expires": "1 hour", "ttl": None})],
)
def test_what_a_running_join_does_not_depend_on_is_no_change(join: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    with TestDriver(version(join, **before)) as driver:
        assert driver.evolve(version(join, **after)).status == "same"


def one(keys: pa.Table) -> list[dict[str, Any]]:
    return [{"k": k, "x": 1} for k in keys["k"].to_pylist()]


def two(keys: pa.Table) -> list[dict[str, Any]]:
    return [{"k": k, "x": 2} for k in keys["k"].to_pylist()]


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("join", JOINS)
def test_the_code_of_a_function_before_a_join_may_change(join: str, side: int) -> None:
    def calling(function: Callable[[pa.Table], Any]) -> Callable[[Two], Two]:
        def before(both: Two) -> Two:
            looked_up = both[side].lookup(function, on="k", returns="x int", cache="0s")
            return (looked_up, both[1]) if side == 0 else (both[0], looked_up)

        return before

    with TestDriver(version(join, calling(one))) as driver:
        driver.send_all({"a": [{"id": 1, "k": "x", "n": 1, "at": at(10)}], "b": [{"rid": 1, "k": "x", "n": 1, "at": at(9)}]})
        found = driver.evolve(version(join, calling(two)), shards=3)
        assert "keep    step out/join: the code of a function changed (results of the earlier code stay)" in str(found).splitlines()
        driver.send_all({"a": [{"id": 2, "k": "y", "n": 1, "at": at(11)}], "b": [{"rid": 2, "k": "y", "n": 1, "at": at(10)}]})
        driver.end()
        assert sorted((row["id"], row["rid"], row["x"]) for row in driver.rows("out")) == [(1, 1, 1), (2, 2, 2)]
