"""Rows that come again as they were: what they are joined with is not told."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at

KAFKA = hr.kafka("topic", servers="127.0.0.1:1")
NAN = float("nan")
# Each type with two values.
VALUES: dict[str, tuple[Any, Any]] = {
    "struct<x: int, y: array<string>>": ({"x": 1, "y": ["a", None]}, {"x": 1, "y": ["a", "b"]}),
    "array<double>": ([NAN, None], [NAN]),
    "array<struct<x: int>>": ([{"x": None}], [None]),
    "map<string, array<int>>": ({"a": [1], "b": None}, {"a": [1], "b": []}),
    "double": (NAN, 0.0),
}


def told(driver: TestDriver) -> list[tuple[int, str]]:
    """What a reader of the changes is told so far."""
    return [(row["id"], row["op"]) for row in driver.rows("changes")]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("kind", VALUES)
def test_a_row_that_comes_again_as_it_was_touches_none_that_it_meets(kind: str, how: str) -> None:
    first, second = VALUES[kind]
    app = Declaration("unchanged")
    orders = app.table("orders", f"id int, product string, o {kind}", key="id", source=KAFKA)
    products = app.table("products", f"product string, p {kind}", key="product", source=KAFKA)
    joined = orders.join(products, on="product", how=how, ttl=None)
    app.sink(joined.to_stream(), LogTopic("changes"), name="changes")
    pen, order = {"product": "pen", "p": first}, {"id": 1, "product": "pen", "o": first}
    with TestDriver(app) as driver:
        driver.send("products", [pen])
        driver.send("orders", [order, {"id": 2, "product": "pen", "o": None}])
        begun = len(told(driver))
        driver.restart()
        driver.send("products", [pen])
        driver.send("orders", [order])
        driver.send_all({"products": [pen], "orders": [order]})
        assert len(told(driver)) == begun
        driver.send("products", [{**pen, "p": second}])
        assert sorted(told(driver)[begun:]) == [(1, "update"), (2, "update")]
        driver.send("orders", [{**order, "o": second}])
        assert told(driver)[begun + 2 :] == [(1, "update")]
        driver.send("products", [{**pen, "p": None}])
        assert sorted(told(driver)[begun + 3 :]) == [(1, "update"), (2, "update")]


def timed(how: str = "inner") -> TestDriver:
    """Orders and prices whose rows do not have their time in a column."""
    app = Declaration("timed")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("1 hour", idle="1 day")}
    orders = app.stream("orders", "id int, product string, at timestamp", **timed).select("id, product").to_table("id", ttl=None)
    prices = app.stream("prices", "product string, price int, at timestamp", **timed).select("product, price")
    joined = orders.join(prices.to_table("product", ttl=None), on="product", how=how, ttl=None)
    app.sink(joined.to_stream(), LogTopic("changes"), name="changes")
    app.view("counted", joined.to_stream().window(tumbling("5 seconds"), by="product").agg(facts="count(*)"))
    app.view("latest", joined.group("product", ttl=None).agg(last="last(id)", rows="count(*)"))
    return TestDriver(app)


def price(second: float, price: int = 5, product: str = "pen") -> dict[str, Any]:
    return {"product": product, "price": price, "at": at(second)}


def order(number: int, second: float) -> dict[str, Any]:
    return {"id": number, "product": "pen", "at": at(second)}


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_a_row_with_another_time_touches_only_results_whose_time_it_changes(how: str) -> None:
    with timed(how) as driver:
        driver.send("prices", [price(10)])
        driver.send("orders", [order(1, 20), order(2, 40)])
        begun = len(told(driver))
        driver.send("prices", [price(15)])
        assert told(driver)[begun:] == [], "both results have the time of the order"
        driver.send("prices", [price(30)])
        assert told(driver)[begun:] == [(1, "update")], "the time of the other result is still that of its order"
        driver.send("orders", [order(1, 25)])
        assert told(driver)[begun + 1 :] == [], "the result has the time of the price"
        driver.send_all({"orders": [order(1, 26), order(2, 41)], "prices": [price(31)]})
        assert sorted(told(driver)[begun + 1 :]) == [(1, "update"), (2, "update")]
        assert [(row["last"], row["rows"]) for row in driver.rows("latest")] == [(2, 2)]


def test_the_time_of_a_row_that_touched_nothing_counts_when_it_meets_another() -> None:
    with timed() as driver:
        driver.send("prices", [price(10)])
        driver.send("orders", [order(1, 20)])
        driver.send("prices", [price(15)])
        driver.restart()
        driver.send("orders", [order(2, 12)])
        assert told(driver) == [(1, "insert"), (2, "insert")]
        driver.end()
        assert {(row["window_start"], row["facts"]) for row in driver.rows("counted")} == {(at(15), 1), (at(20), 1)}


def test_an_early_answer_with_lists_is_corrected_only_if_another_version_was_valid() -> None:
    app = Declaration("early")
    stamped: dict[str, Any] = {"time": "at", "watermark": bounded("10s", idle="1 minute")}
    asks = app.stream("asks", "id int, k string, at timestamp", **stamped)
    lists = app.stream("lists", "k string, l array<int>, at timestamp", **stamped)
    answers = asks.join(lists.to_table("k").as_of("at", history="1 hour"), on="k").emit(early=True, key="id")
    app.sink(answers.select("id, l").to_stream(), LogTopic("changes"), name="changes")
    with TestDriver(app) as driver:
        driver.send("lists", [{"k": "x", "l": [1], "at": at(10)}])
        driver.send("asks", [{"id": 1, "k": "x", "at": at(15)}, {"id": 2, "k": "x", "at": at(25)}])
        driver.send("lists", [{"k": "x", "l": [1, 2], "at": at(20)}])
        driver.end()
        assert told(driver) == [(1, "insert"), (2, "insert"), (2, "update")]
