"""Keys of every type that a column of a join may have: equal values meet, in every kind of join, and no others do."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at

KAFKA = hr.kafka("topic", servers="127.0.0.1:1")
# Each type with values that are hard to tell apart, or at its ends.
VALUES: dict[str, list[Any]] = {
    "boolean": [False, True],
    "tinyint": [-128, 127, 0],
    "smallint": [-32768, 32767, 0],
    "int": [-(2**31), 2**31 - 1, 0],
    "bigint": [-(2**63), 2**63 - 1, 2**53, 2**53 + 1],
    "float": [0.0, 1.5, float("nan"), float("inf"), float("-inf"), 3.4028234663852886e38],
    "double": [0.0, 5e-324, float("nan"), float("inf"), float("-inf"), 1.7976931348623157e308],
    "decimal(38, 0)": [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(0)],
    "decimal(9, 2)": [Decimal("1.50"), Decimal("1.51"), Decimal("-9999999.99")],
    "string": ["", " ", "a", "A", "a\0", "ä", "a\u0308", "\U0001f600", "x" * 70_000],
    "binary": [b"", b"\0", b"\0\0", b"\xff\xfe"],
    "date": [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)],
    "timestamp": [datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(9999, 12, 31, tzinfo=UTC)],
    "timestamp_ntz": [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(9999, 12, 31)],  # noqa: DTZ001 - it has none
}


def echoed(keys: pa.Table) -> list[dict[str, Any]]:
    return [{"k": key, "rid": str(key)} for key in keys["k"].to_pylist()]


def declared(kind: str) -> Declaration:
    app = Declaration("types")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("10s", idle="1 day")}
    left = app.stream("a", f"id int, k {kind}, at timestamp", **timed)
    right = app.stream("b", f"rid int, k {kind}, at timestamp", **timed)
    latest = right.to_table("k")
    app.sink(left.join_within(right, on="k", within="1 minute"), LogTopic("within"), name="within")
    app.sink(left.join(latest.as_of("at", history="1 minute"), on="k"), LogTopic("versions"), name="versions")
    app.sink(left.join(latest, on="k"), LogTopic("current"), name="current")
    app.view("tables", left.to_table("id").join(latest, on="k", ttl=None))
    app.view("moved", left.to_table("id").join(right.to_table("rid"), on="k", ttl=None))
    app.sink(left.lookup(echoed, on="k", returns="rid string", batch=2), LogTopic("asked"), name="asked")
    return app


@pytest.mark.parametrize("kind", VALUES)
def test_equal_keys_meet_whatever_their_type(kind: str) -> None:
    values = VALUES[kind]
    with TestDriver(declared(kind), shards=3) as driver:
        driver.send("b", [{"rid": number, "k": key, "at": at(0)} for number, key in enumerate([*values, None])])
        driver.restart()
        driver.send("a", [{"id": number, "k": key, "at": at(1)} for number, key in enumerate([*values, None])])
        driver.rescale(2)
        driver.end()
        met = [(number, number) for number in range(len(values))]
        for name in ("within", "versions", "current", "tables", "moved"):
            assert sorted((row["id"], row["rid"]) for row in driver.rows(name)) == met, name
        assert driver.dead_letters("a") == []
        assert sorted((row["id"], row["rid"]) for row in driver.rows("asked")) == [(n, str(key)) for n, key in enumerate(values)]
