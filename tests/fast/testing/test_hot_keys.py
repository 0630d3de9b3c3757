"""Keys with very many records are found while an app runs, and named where they cost something."""

from __future__ import annotations

import random
from typing import Any

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.plan.explain import explained
from headrace.testing.driver import TestDriver
from tests.support.streams import SCHEMA, at


def app_of_two() -> Declaration:
    app = Declaration("skewed")
    stream = app.stream("records", SCHEMA, key="key", time="at", watermark=bounded("10s"))
    app.view("counts", stream.window(tumbling("1 minute"), by="key").agg(n="count(*)"))
    app.view("firsts", stream.dedup(["key", "value"], ttl="1 minute").group("key", ttl=None).agg(n="count(*)"))
    app.view("last", stream.process(lambda event: event, by="key"), key="key")
    return app


def sent(share: float, count: int = 2_000) -> list[dict[str, Any]]:
    chance = random.Random(3)
    keys = ["hot" if chance.random() < share else f"k{number}" for number in range(count)]
    return [{"key": key, "value": number, "at": at(number / 100)} for number, key in enumerate(keys)]


def test_a_key_with_most_records_is_named_and_said_to_be_trouble_only_where_its_records_have_to_meet() -> None:
    with TestDriver(app_of_two()) as driver:
        driver.send("records", sent(0.7))
        found = {hot.step: hot for hot in driver.hot_keys() if hot.key == '{"key":"hot"}'}
        assert {step for step, hot in found.items() if hot.trouble} == {"records.process"}
        assert set(found) >= {"records.window", "records.process"}
        assert all(0.6 < found[step].share < 0.8 for step in ("records.window", "records.process"))
        assert "one core" in str(found["records.process"])


def test_even_keys_and_small_batches_have_no_hot_ones() -> None:
    with TestDriver(app_of_two()) as driver:
        driver.send("records", sent(0.0))
        assert driver.hot_keys() == []
        driver.send("records", sent(1.0, count=900))
        assert driver.hot_keys() == []


def test_explain_says_what_a_hot_key_costs_at_each_step() -> None:
    words = {step.step: step.hot_keys for step in explained(app_of_two().plan(), 4, {"records.process": "a has 70%"}).steps}
    assert words["records"] == ""
    assert "costs no more" in words["records.window"]
    assert words["records.process"] == "all records of a key go to one shard; a has 70%"
