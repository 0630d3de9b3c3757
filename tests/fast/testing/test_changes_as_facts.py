"""The changes of a table as facts: what became of each key, and facts like any others behind it."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, perfect, tumbling
from headrace.core.errors import PlanError
from headrace.testing.driver import TestDriver
from tests.support.examples import seeds


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{clock}+00:00")


def orders(app: Declaration) -> Stream:
    return app.stream(
        "orders", schema="id string, state string, amount int, at timestamp", key="id", time="at", watermark=bounded("10 seconds")
    )


def order(number: str, state: str, clock: str, amount: int = 1) -> dict[str, Any]:
    return {"id": number, "state": state, "amount": amount, "at": at(clock)}


def facts(driver: TestDriver, view: str = "changes") -> list[tuple[Any, ...]]:
    return [(row["id"], row["state"], row["op"]) for row in driver.rows(view)]


def test_facts_count_next_to_a_table_in_the_same_union() -> None:
    app = Declaration("mixed")
    limits, payments = (
        app.stream(name, "account string, amount int, at timestamp", time="at", watermark=perfect(idle="1 day"))
        for name in ("limits", "payments")
    )
    hours = limits.window(tumbling("1 hour"), by="account").agg(amount="max(amount)").emit(until="1 day")
    united = hours.select("account, amount, window_end as at").union(payments)
    app.view("free", limits.to_table("account").union(payments).group("account", ttl=None).agg(amount="sum(amount)", records="count(*)"))
    app.view("days", united.window(tumbling("1 day"), by="account").agg(amount="sum(amount)", records="count(*)"))

    def record(amount: int, time: str) -> list[dict[str, object]]:
        return [{"account": "a", "amount": amount, "at": f"2026-01-01T{time}Z"}]

    with TestDriver(app) as driver:
        driver.send("payments", record(-10, "12:00:00"))
        driver.send("limits", record(100, "10:00:00"))
        driver.send("limits", record(500, "12:00:00"))
        driver.restart()
        driver.send("limits", record(300, "10:30:00"))
        driver.send("payments", record(-20, "12:10:00"))
        assert driver.rows("free") == [{"account": "a", "amount": 470, "records": 3}]
        driver.end()
        assert [(row["amount"], row["records"]) for row in driver.rows("days")] == [(770, 4)]


def test_each_change_of_a_table_is_an_insert_an_update_or_a_delete() -> None:
    app = Declaration("changes")
    open_orders = orders(app).to_table(key="id").where("state <> 'paid'")
    app.view("changes", open_orders.to_stream(), key=("id", "state", "op"))
    with TestDriver(app) as driver:
        driver.send("orders", [order("1", "new", "12:00:00"), order("2", "new", "12:00:01")])
        driver.send("orders", [order("1", "sent", "12:00:05"), order("2", "paid", "12:00:06"), order("3", "paid", "12:00:06")])
        assert facts(driver) == [("1", "new", "insert"), ("1", "sent", "update"), ("2", "new", "delete"), ("2", "new", "insert")]
        counts = {row["step"]: row for row in driver.accounting()}
        assert (counts["orders.table.where.stream"]["in"], counts["orders.table.where.stream"]["out"]) == (5, 4)


def test_the_facts_have_times_and_can_be_counted_in_windows() -> None:
    app = Declaration("rates")
    changes = orders(app).to_table(key="id").to_stream()
    app.view("per_minute", changes.window(tumbling("1 minute"), by="op").agg(changes="count(*)", most="max(amount)"))
    with TestDriver(app) as driver:
        driver.send("orders", [order("1", "new", "12:00:00", 5), order("2", "new", "12:00:01", 7)])
        driver.send("orders", [order("1", "sent", "12:00:30", 9)])
        driver.restart()
        driver.send("orders", [order("1", "paid", "12:01:30", 2)])
        driver.end()
        found = [(row["op"], row["window_start"], row["changes"], row["most"]) for row in driver.rows("per_minute")]
        assert found == [("insert", at("12:00:00"), 2, 7), ("update", at("12:00:00"), 1, 9), ("update", at("12:01:00"), 1, 2)]


def test_a_forgotten_key_is_a_delete_at_the_time_it_expired() -> None:
    app = Declaration("expiry")
    changes = orders(app).to_table(key="id", ttl="1 minute").to_stream()
    app.view("deleted", changes.where("op = 'delete'").window(tumbling("1 minute"), by="id").agg(gone="count(*)"))
    with TestDriver(app, shards=1) as driver:
        driver.send("orders", [order("1", "new", "12:00:20")])
        driver.send("orders", [order("2", "new", "12:05:00")])
        driver.send("orders", [order("2", "new", "12:09:00")])
        driver.end()
        assert driver.late("orders") == []
        assert [(row["id"], row["window_start"]) for row in driver.rows("deleted")] == [("1", at("12:01:00"))]


def test_a_corrected_window_is_an_update_of_its_result() -> None:
    app = Declaration("corrections")
    counts = orders(app).window(tumbling("1 minute"), by="state").agg(n="count(*)").emit(until="1 hour")
    app.view("changes", counts.to_stream(), key=("state", "n", "op"))
    with TestDriver(app) as driver:
        driver.send("orders", [order("1", "new", "12:00:00")])
        driver.advance("2026-01-01T12:02:00Z")
        driver.send("orders", [order("2", "new", "12:00:30")])
        assert [(row["n"], row["op"]) for row in driver.rows("changes")] == [(1, "insert"), (2, "update")]


def test_a_table_without_its_key_has_no_changes_to_tell() -> None:
    table = orders(Declaration("keyless")).to_table(key="id")
    for lost in (table.select("state"), table.select("upper(id) as id, state"), table.flat_map("split(state, '')", into="letter")):
        with pytest.raises(PlanError, match="nothing tells its records apart"):
            lost.to_stream()
    assert table.select("id as number, state").to_stream().columns.names == ["number", "state", "op"]


def test_a_table_of_a_table_follows_it_also_to_an_older_row() -> None:
    app = Declaration("followed")
    newest = orders(app).to_table(key="id").where("state <> 'paid'").to_table(key="amount")
    app.view("newest", newest)
    app.view("followed", newest.to_table(key="amount"))
    with TestDriver(app) as driver:
        driver.send("orders", [order("1", "new", "12:00:01"), order("2", "new", "12:00:05")])
        assert [row["id"] for row in driver.rows("followed")] == ["2"]
        driver.send("orders", [order("2", "paid", "12:00:06")])
        assert driver.rows("followed") == driver.rows("newest") == [order("1", "new", "12:00:01")]


def test_a_table_that_became_facts_and_a_table_again_is_the_same() -> None:
    for seed in seeds(6):
        there_and_back(seed)


def there_and_back(seed: int) -> None:
    chance, app = random.Random(seed), Declaration("round")
    came = orders(app)
    latest = came.to_table(key="id", ttl="30 seconds")
    tables = {
        "latest": latest,
        "open": came.to_table(key="id").where("state <> 'paid'").select("id as number", "state", "amount"),
        "newest": came.to_table(key="id").where("state <> 'paid'").to_table(key="amount"),
        "sums": latest.group("state", ttl=None).agg(amount="sum(amount)"),
        "minutes": came.window(tumbling("10 seconds"), by="state").agg(n="count(*)").emit(early="3 seconds", until="1 minute"),
        "best": latest.top(2, by="amount"),
    }
    for name, table in tables.items():
        app.view(name, table)
        app.view(f"{name} again", table.to_stream().to_table(table.node.keys))
    with TestDriver(app, shards=chance.choice([1, 3])) as driver:
        for epoch in range(12):
            moments = [at("12:00:20") + timedelta(seconds=epoch * 6 + chance.randrange(-20, 6)) for _ in range(chance.randrange(6))]
            states, amounts = ("new", "sent", "paid"), range(1, 4)
            driver.send(
                "orders",
                [
                    {"id": chance.choice("123"), "state": chance.choice(states), "amount": chance.choice(amounts), "at": moment}
                    for moment in moments
                ],
            )
            if chance.random() < 0.3:
                driver.restart()
            for name in tables:
                assert driver.rows(f"{name} again") == driver.rows(name), f"seed {seed}, epoch {epoch}, {name}"


def test_changes_that_another_step_has_seen_stay_facts_in_a_table() -> None:
    app = Declaration("facts")
    changes = orders(app).to_table(key="id").where("state <> 'paid'").to_stream()
    app.view("last_seen", changes.where("amount > 0").to_table(key="id"))
    app.view("each_kind", changes.to_table(key=("id", "op")))
    with TestDriver(app) as driver:
        driver.send("orders", [order("1", "new", "12:00:00")])
        driver.send("orders", [order("1", "paid", "12:00:05")])
        assert facts(driver, "last_seen") == [("1", "new", "delete")]
        assert facts(driver, "each_kind") == [("1", "new", "delete"), ("1", "new", "insert")]
