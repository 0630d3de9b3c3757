"""Tables whose rows nothing tells apart: each step that needs their key is refused with a hint that, followed, works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.core.errors import PlanError
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver

KAFKA = hr.kafka("topic", servers="127.0.0.1:1")


class Shops:
    """Two tables with the same columns and the same keys, and one that they are joined with."""

    def __init__(self) -> None:
        self.app = Declaration("shops")
        self.east = self.app.table("east", "id int, product string", key="id", source=KAFKA)
        self.west = self.app.table("west", "id int, product string", key="id", source=KAFKA)
        self.prices = self.app.table("prices", "product string, price int", key="product", source=KAFKA)
        self.sales = self.app.stream("sales", "id int, product string", key="id")

    def told_apart(self) -> Any:
        return self.east.with_columns(origin="'east'").union(self.west.with_columns(origin="'west'"))


NEEDS_A_KEY: dict[str, Callable[[Shops, Any], Any]] = {
    "a join": lambda shops, table: table.join(shops.prices, on="product", ttl=None),
    "a join on the right": lambda shops, table: shops.prices.join(table, on="product", ttl=None),
    "a join of a stream": lambda shops, table: shops.sales.join(table, on="id"),
    "a table": lambda shops, table: shops.app.view("out", table.to_table("id")),
    "a view": lambda shops, table: shops.app.view("out", table),
    "a view by a key": lambda shops, table: shops.app.view("out", table, key="id"),
    "a sink": lambda shops, table: shops.app.sink(table, LogTopic("out")),
    "changes as facts": lambda shops, table: table.to_stream(),
    "top": lambda shops, table: shops.app.view("out", table.top(3, by="id"), key="id"),
}
LOSES_ITS_KEY: dict[str, tuple[Callable[[Shops], Any], str]] = {
    "union": (lambda shops: shops.east.union(shops.west), "origin"),
    "select": (lambda shops: shops.east.select("product, id + 1 as id"), "keep id, the key of 'east.table', as it is"),
    "flat_map": (lambda shops: shops.east.flat_map("split(product, '')", into="product"), "before the table is made"),
    "a step behind": (lambda shops: shops.east.union(shops.west).where("id > 0"), "origin"),
}


@pytest.mark.parametrize("need", NEEDS_A_KEY)
@pytest.mark.parametrize("loss", LOSES_ITS_KEY)
def test_a_table_that_lost_its_key_is_refused_with_what_lost_it(need: str, loss: str) -> None:
    made, remedy = LOSES_ITS_KEY[loss]

    def run() -> None:
        shops = Shops()
        NEEDS_A_KEY[need](shops, made(shops))
        TestDriver(shops.app)

    with pytest.raises(PlanError, match="tells") as refused:
        run()
    assert remedy in (refused.value.hint or "")


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_tables_of_a_union_that_a_constant_tells_apart_are_joined(how: str) -> None:
    shops = Shops()
    joined = shops.told_apart().join(shops.prices, on="product", how=how, ttl=None)
    shops.app.view("out", joined)

    def found(driver: TestDriver) -> set[tuple[Any, ...]]:
        return {(row["origin"], row["id"], row["product"], row["price"]) for row in driver.rows("out")}

    alone = {("west", 2, "cup", None)} if how in ("left", "full") else set()
    unsold: set[tuple[Any, ...]] = {(None, None, "mug", 7)} if how in ("right", "full") else set()
    with TestDriver(shops.app, shards=3) as driver:
        driver.send("east", [{"id": 1, "product": "pen"}])
        driver.send("west", [{"id": 1, "product": "pen"}, {"id": 2, "product": "cup"}])
        driver.send("prices", [{"product": "pen", "price": 3}, {"product": "mug", "price": 7}])
        assert found(driver) == {("east", 1, "pen", 3), ("west", 1, "pen", 3)} | alone | unsold
        driver.remove("east", [{"id": 1}])
        assert found(driver) == {("west", 1, "pen", 3)} | alone | unsold
        driver.send("west", [{"id": 1, "product": "mug"}])
        assert found(driver) == {("west", 1, "mug", 7)} | alone | ({(None, None, "pen", 3)} if unsold else set())


def test_tables_of_a_union_that_a_constant_tells_apart_are_views_tables_and_facts() -> None:
    shops = Shops()
    union = shops.told_apart()
    assert union.node.keys == ("id", "origin")
    shops.app.view("both", union)
    shops.app.view("any", union.to_table("id"))
    shops.app.view("most", union.top(1, by="id"))
    shops.app.sink(union.to_stream(), LogTopic("changes"), name="changes")
    with TestDriver(shops.app) as driver:
        driver.send("east", [{"id": 1, "product": "pen"}])
        driver.send("west", [{"id": 1, "product": "cup"}])
        assert [(row["id"], row["origin"]) for row in driver.rows("both")] == [(1, "east"), (1, "west")]
        driver.remove("west", [{"id": 1}])
        assert [(row["id"], row["origin"]) for row in driver.rows("any")] == [(1, "east")]
        assert [(row["id"], row["origin"]) for row in driver.rows("most")] == [(1, "east")]
        changes = [(row["origin"], row["op"]) for row in driver.rows("changes")]
        assert changes == [("east", "insert"), ("west", "insert"), ("west", "delete")]


def test_a_constant_tells_tables_apart_only_if_it_is_another_in_each() -> None:
    shops = Shops()
    three = shops.told_apart().union(shops.east.with_columns(origin="'east'"))
    assert three.node.keys == ()
    renamed = shops.east.select("id, product, 'a' as origin").select("id, product, origin as shop").where("id > 0")
    assert renamed.union(shops.west.select("id, product, 'b' as shop")).node.keys == ("id", "shop")
    assert shops.east.with_columns(origin="product").union(shops.west.with_columns(origin="'b'")).node.keys == ()
    other = shops.prices.select("1 as id, product, 'b' as origin")
    assert shops.east.with_columns(origin="'a'").union(other).node.keys == ()
