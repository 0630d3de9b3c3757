"""The promises of targets are those that the docs list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.core.promise import IN_LOG, Promise, Takes

PAGE = (Path(__file__).parents[3] / "docs" / "guarantees.md").read_text(encoding="utf-8")
TABLE = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
ROWS = {cells[0]: cells for cells in TABLE if len(cells) == 5}
TARGETS: list[tuple[str, Any]] = [
    ("view, log topic", hr.log("topic")),
    ("PostgreSQL", hr.postgres("table", dsn="postgresql://db/shop")),
    ("Kafka", hr.kafka("topic", servers="broker:9092")),
    ("Kafka, `at_least_once=True`", hr.kafka("topic", servers="broker:9092", at_least_once=True)),
    ("Redis", hr.redis("name", url="redis://cache")),
    ("Parquet files", hr.parquet("files")),
    ("Delta table", hr.delta("table")),
    ("Iceberg table", hr.iceberg("shop.table", warehouse="warehouse")),
    ("search, a directory", hr.search("index")),
    ("search, OpenSearch", hr.search("http://search:9200", index="products")),
    ("HTTP", hr.http("http://service/records")),
]


@pytest.mark.parametrize(("name", "target"), TARGETS, ids=[name for name, _ in TARGETS])
def test_the_page_says_what_a_target_promises(name: str, target: Any) -> None:
    promise: Promise = target.promise
    assert ROWS[name][1:4] == [promise.delivery, promise.mechanism, promise.visible]


def test_every_sink_of_the_page_is_promised_by_a_target() -> None:
    heads = {"sink"} | {name for name, _ in TARGETS}
    sinks = PAGE[PAGE.index("| sink | guarantee") :].split("\n\n")[0].splitlines()
    assert {line.strip("|").split("|")[0].strip() for line in sinks if not line.startswith("|---")} == heads


def test_a_target_that_only_appends_takes_facts_only_and_explain_says_what_is_promised(tmp_path: Path) -> None:
    assert hr.log("topic", append_only=True).promise.takes is Takes.FACTS
    app = hr.App("shop", home=tmp_path)
    orders = app.stream("orders", schema="id int")
    app.sink(orders, hr.log("copies"), name="copies")
    assert str(IN_LOG) in str(app.explain())
