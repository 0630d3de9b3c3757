"""Lookups in other systems in whole apps: what is asked and how often, and where records without an answer go."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from headrace.api.declaration import Declaration
from headrace.log.target import LogTopic
from headrace.plan.explain import explained
from headrace.testing.driver import TestDriver
from tests.support.processes import PATIENCE

Row = dict[str, Any]
NAMES = {"a": "Ada", "b": "Bob", "c": "Cyd"}


class Directory:
    """A remote system that remembers what it was asked."""

    def __init__(self, known: dict[str, str] | None = None) -> None:
        self.known = NAMES if known is None else known
        self.asked: list[list[str]] = []

    def __call__(self, keys: pa.Table) -> list[Row]:
        asked = keys["id"].to_pylist()
        self.asked.append(sorted(asked))
        return [{"id": key, "name": self.known[key]} for key in asked if key in self.known]

    @property
    def keys(self) -> list[str]:
        return sorted(key for keys in self.asked for key in keys)


def driver_of(function: Callable[[pa.Table], Any], shards: int = 1, **options: Any) -> TestDriver:
    app = Declaration("orders")
    orders = app.stream("orders", "n int, user string", key="n")
    chosen: Row = {"on": {"user": "id"}, "returns": "name string", "how": "left", "backoff": "1 us"} | options
    app.sink(orders.lookup(function, **chosen), LogTopic("named"), name="named")
    return TestDriver(app, shards=shards, starts_at="2026-01-01T12:00:00Z")


def send(driver: TestDriver, *users: str | None) -> None:
    driver.send("orders", [{"n": n, "user": user} for n, user in enumerate(users)])


def named(driver: TestDriver) -> list[tuple[int, str | None]]:
    return sorted(((row["n"], row["name"]) for row in driver.rows("named")), key=str)


def counts(driver: TestDriver) -> dict[str, int]:
    (found,) = [row for row in driver.accounting() if row["step"] == "orders.lookup"]
    return {end: number for end, number in found.items() if number and end != "step"}


def reasons(driver: TestDriver) -> list[str]:
    return [row["reason"] for row in driver.dead_letters("orders")]


@pytest.mark.parametrize("shards", [1, 3])
def test_each_key_of_an_epoch_is_asked_for_once(shards: int) -> None:
    directory = Directory()
    driver = driver_of(directory, shards)
    send(driver, "a", "b", "a", "a", "b")
    assert directory.keys == ["a", "b"]
    assert named(driver) == [(0, "Ada"), (1, "Bob"), (2, "Ada"), (3, "Ada"), (4, "Bob")]
    assert counts(driver) == {"in": 5, "out": 5}


def test_keys_are_asked_for_in_batches() -> None:
    directory = Directory()
    driver = driver_of(directory, batch=2)
    send(driver, "a", "b", "c", "d", "e")
    assert sorted(len(keys) for keys in directory.asked) == [1, 2, 2]
    assert named(driver) == [(0, "Ada"), (1, "Bob"), (2, "Cyd"), (3, None), (4, None)]


def test_calls_run_at_the_same_time() -> None:
    together = threading.Barrier(3)

    def met(keys: pa.Table) -> list[Row]:
        together.wait(timeout=PATIENCE)
        return [{"id": key, "name": "met"} for key in keys["id"].to_pylist()]

    driver = driver_of(met, batch=1, parallel=3)
    send(driver, "a", "b", "c")
    assert named(driver) == [(0, "met"), (1, "met"), (2, "met")]


@pytest.mark.parametrize(("how", "expected", "counted"), [
    ("left", [(0, "Ada"), (1, None), (2, None)], {"in": 3, "out": 3}), ("inner", [(0, "Ada")], {"in": 3, "out": 1, "filtered": 2}),
])  # fmt: skip
def test_a_key_without_a_row_and_a_null_key_match_nothing(how: str, expected: list[Any], counted: dict[str, int]) -> None:
    directory = Directory()
    driver = driver_of(directory, how=how)
    send(driver, "a", "nobody", None)
    assert named(driver) == expected
    assert counts(driver) == counted
    assert directory.keys == ["a", "nobody"]


def test_nothing_is_asked_for_null_keys_alone() -> None:
    directory = Directory()
    driver = driver_of(directory)
    send(driver, None, None)
    assert (directory.asked, named(driver)) == ([], [(0, None), (1, None)])


def test_an_answer_is_kept_until_it_expires_and_so_is_that_there_is_none() -> None:
    directory = Directory(dict(NAMES))
    driver = driver_of(directory, cache="10 minutes")
    send(driver, "a", "x")
    directory.known |= {"a": "Anna", "x": "Xi"}
    driver.wait("9 minutes 59 seconds")
    send(driver, "a", "x", "b")
    assert directory.keys == ["a", "b", "x"]
    driver.wait("1 second")
    send(driver, "a", "x", "b")
    assert directory.keys == ["a", "a", "b", "x", "x"]
    assert sorted(str(name) for _, name in named(driver)) == ["Ada", "Ada", "Anna", "Bob", "Bob", "None", "None", "Xi"]
    driver.wait("10 minutes 1 second")
    assert [one["rows"] for one in driver.state()] == [0]


def test_without_a_cache_every_epoch_asks() -> None:
    directory = Directory()
    driver = driver_of(directory, cache="0 seconds")
    send(driver, "a", "a")
    send(driver, "a")
    assert directory.asked == [["a"], ["a"]]


def test_after_a_restart_and_on_other_shards_cached_keys_are_not_asked_for_again() -> None:
    directory = Directory()
    driver = driver_of(directory, shards=2)
    send(driver, "a", "b", "x")
    driver.restart()
    send(driver, "a", "b", "x")
    driver.rescale(5)
    send(driver, "a", "b", "x", "c")
    assert directory.keys == ["a", "b", "c", "x"]
    assert counts(driver) == {"in": 10, "out": 10}


def test_a_call_that_raises_is_repeated() -> None:
    directory, calls = Directory(), count(1)

    def flaky(keys: pa.Table) -> list[Row]:
        if next(calls) < 3:
            raise ConnectionError("refused")
        return directory(keys)

    driver = driver_of(flaky, retries=2)
    send(driver, "a")
    assert (named(driver), next(calls), reasons(driver)) == ([(0, "Ada")], 4, [])


def test_records_of_keys_that_could_not_be_asked_for_are_dead_letters_and_asked_for_in_the_next_epoch() -> None:
    directory, down = Directory(), [True]

    def failing(keys: pa.Table) -> list[Row]:
        if down[0]:
            raise ConnectionError("refused")
        return directory(keys)

    driver = driver_of(failing, retries=1)
    send(driver, "a", "a", None)
    assert named(driver) == [(2, None)]
    assert counts(driver) == {"in": 3, "out": 1, "dead_letter": 2}
    (reason,) = set(reasons(driver))
    assert reason.startswith("failing failed 2 times: ConnectionError: refused (test_lookups_in_apps.py:")
    down[0] = False
    send(driver, "a")
    assert named(driver) == [(0, "Ada"), (2, None)]


def test_a_batch_that_fails_takes_no_other_with_it() -> None:
    def failing(keys: pa.Table) -> list[Row]:
        if "b" in keys["id"].to_pylist():
            raise ValueError("b")
        return Directory()(keys)

    driver = driver_of(failing, batch=1, retries=0)
    send(driver, "a", "b", "c", "b")
    assert named(driver) == [(0, "Ada"), (2, "Cyd")]
    assert counts(driver) == {"in": 4, "out": 2, "dead_letter": 2}


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Lets calls that hang go on when the test has ended."""
    event = threading.Event()
    yield event
    event.set()


def test_a_call_that_hangs_is_given_up(released: threading.Event) -> None:
    calls = count()

    def hanging(keys: pa.Table) -> list[Row]:
        next(calls)
        released.wait()
        return []

    driver = driver_of(hanging, timeout="10 ms", retries=1, parallel=1)
    send(driver, "a")
    assert next(calls) == 2
    assert "failed 2 times: TimeoutError: no answer within 10 milliseconds" in reasons(driver)[0]
    send(driver, "a")
    send(driver, "a")
    assert next(calls) == 5, "no more than four calls that hang"
    assert "is not called: 4 earlier calls have not returned" in reasons(driver)[2]
    assert counts(driver) == {"in": 3, "dead_letter": 3}


WRONG: list[tuple[str, Callable[[list[str]], Any]]] = [
    ("returned a row for ['z'], which it was not asked for", lambda keys: [{"id": "z", "name": "Zoe"}]),
    ("returns= has no column 'nick'", lambda keys: [{"id": key, "name": "n", "nick": "m"} for key in keys]),
    ("a row has no column 'id'", lambda keys: [{"name": "n"}]),
    ("key id is string, not 5", lambda keys: [{"id": 5, "name": "n"}]),
    ("key id is string, not None", lambda keys: [{"id": None, "name": "n"}]),
    ("a row is a dictionary, not 'a'", lambda keys: keys),
    ("it returned NoneType, not rows", lambda keys: None),
    ("it returned dict, not rows", lambda keys: dict.fromkeys(keys, "n")),
    ("TypeError: 'int' object is not iterable", lambda keys: 5),
    ("returned more than 120 rows for 2 keys", lambda keys: ({"id": "a", "name": "n"} for _ in count())),
    ("it ended with SystemExit", lambda keys: sys.exit(3)),
]


@pytest.mark.parametrize(("said", "function"), WRONG)
def test_what_makes_no_sense_is_the_reason_of_dead_letters_and_never_a_row(said: str, function: Callable[[list[str]], Any]) -> None:
    driver = driver_of(lambda keys: function(keys["id"].to_pylist()), retries=0)
    send(driver, "a", "b")
    assert [said in reason for reason in reasons(driver)] == [True, True], reasons(driver)
    assert named(driver) == []
    assert counts(driver) == {"in": 2, "dead_letter": 2}


WRONG_FOR_ONE: list[tuple[str, Row]] = [
    ("column name is string, not 5", {"id": "a", "name": 5}),
    ("column name is string, not None", {"id": "a", "name": None}),
    ("a row has no column 'name'", {"id": "a"}),
]


@pytest.mark.parametrize(("said", "row"), WRONG_FOR_ONE)
def test_a_wrong_row_is_about_its_own_key(said: str, row: Row) -> None:
    driver = driver_of(lambda keys: [row, {"id": "b", "name": "Bob"}], returns="name string not null")
    send(driver, "a", "b")
    assert [said in reason for reason in reasons(driver)] == [True], reasons(driver)
    assert named(driver) == [(1, "Bob")]


def test_several_rows_for_a_key_are_no_answer() -> None:
    driver = driver_of(lambda keys: [{"id": key, "name": key} for key in ("a", "b", "a", "a")])
    send(driver, "a", "b")
    assert [reason.endswith("returned several rows for the key") for reason in reasons(driver)] == [True]
    assert named(driver) == [(1, "b")]


@pytest.mark.parametrize("form", [pl.DataFrame, pa.Table.from_pylist, iter])
def test_rows_may_be_a_frame_a_table_or_an_iterator(form: Callable[[list[Row]], Any]) -> None:
    driver = driver_of(lambda keys: form(Directory()(keys)))
    send(driver, "a", "b")
    assert named(driver) == [(0, "Ada"), (1, "Bob")]


def test_keys_of_several_columns_are_matched_as_the_declared_types() -> None:
    app = Declaration("pairs")
    orders = app.stream("orders", "shop int, weight double, at date", key="shop")
    seen: list[pa.Schema] = []

    def asked(keys: pa.Table) -> pa.Table:
        seen.append(keys.schema)
        return keys.append_column("price", pa.array(range(keys.num_rows), pa.int64()))

    app.sink(orders.lookup(asked, on=["shop", "weight", "at"], returns="price int"), LogTopic("priced"), name="priced")
    with TestDriver(app, shards=1) as driver:
        weights = [0.0, -0.0, float("nan"), float("nan"), 1.5]
        driver.send("orders", [{"shop": 1, "weight": weight, "at": "2026-01-01"} for weight in weights])
        assert [row["price"] for row in driver.rows("priced")] == [0, 0, 1, 1, 2]
    assert [str(field.type) for field in seen[0]] == ["int32", "double", "date32[day]"]


def test_the_cache_may_change_and_what_is_asked_for_may_not() -> None:
    def version(**options: Any) -> Declaration:
        app = Declaration("orders")
        orders = app.stream("orders", "n int, user string", key="n")
        chosen: Row = {"on": {"user": "id"}, "returns": "name string"} | options
        app.sink(orders.lookup(Directory(), **chosen), LogTopic("named"), name="named")
        return app

    driver = TestDriver(version())
    send(driver, "a")
    driver.evolve(version(cache="1 hour", timeout="1 second"))
    send(driver, "a")
    assert named(driver) == [(0, "Ada"), (0, "Ada")]
    with pytest.raises(Exception, match="cannot continue with its state"):
        driver.evolve(version(returns="nick string"))


def test_explain_says_who_is_asked_and_how_long_an_answer_is_kept() -> None:
    app = Declaration("orders")
    orders = app.stream("orders", "n int, user string", key="n")
    app.sink(orders.lookup(Directory(), on={"user": "id"}, returns="name string"), LogTopic("named"), name="named")
    said = str(explained(app.plan()))
    assert "inner lookup on user = id in Directory, which returns (name string)" in said
    assert "10 minutes after it was asked for, by the wall clock" in said
