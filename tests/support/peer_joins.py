"""Joins that other systems work out in their documents and tests, in the form in which they give them: a key, a name and a second."""

from __future__ import annotations

from typing import Any

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at

Given = list[tuple[str | None, str, float]]
Pairs = list[tuple[Any, Any]]


def declared(app: Declaration, bound: str = "30s") -> tuple[Any, Any]:
    """The streams `left` and `right`."""

    def stream(name: str) -> Any:
        return app.stream(name, "key string, id string, n int, at timestamp", key="key", time="at", watermark=bounded(bound, idle="1 hour"))

    return stream("left"), stream("right")


def rows(given: Given) -> list[dict[str, Any]]:
    return [{"key": key, "id": name, "n": int(second), "at": at(second)} for key, name, second in given]


def pairs(left: Given, right: Given, *, bound: str = "30s", **options: Any) -> Pairs:
    """The names of both sides of each result, at the end of the input."""
    app = Declaration("peer")
    one, two = declared(app, bound)
    app.sink(one.join_within(two, on="key", **options), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("left", rows(left))
        driver.send("right", rows(right))
        driver.end()
        return named(driver)


def named(driver: TestDriver) -> Pairs:
    """The names of both sides of each result so far."""
    return sorted(((row["id"], row["id_right"]) for row in driver.rows("out")), key=str)
