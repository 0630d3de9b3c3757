"""A topic as a table: what tombstones remove, and in which order records of a key count."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import headrace as hr
from headrace.connectors.kafka.keys import decode_key
from headrace.connectors.kafka.records import Records
from headrace.core.columns.keys import encode_keys
from headrace.core.columns.schema import schema
from headrace.operators.changes import TIME
from headrace.operators.event_time.epoch_time import BEGINNING, EpochTime
from headrace.operators.tables.groups import TableSpec


class Message:
    """What Kafka's client gives."""

    def __init__(self, key: bytes | None, value: bytes | None, offset: int) -> None:
        self._content = (key, value, offset)

    def key(self) -> bytes | None:
        return self._content[0]

    def value(self) -> bytes | None:
        return self._content[1]

    def offset(self) -> int:
        return self._content[2]

    def partition(self) -> int:
        return 0

    def timestamp(self) -> tuple[int, int]:
        return 1, 5

    def headers(self) -> None:
        return None


@pytest.mark.parametrize(
    ("kinds", "values"),
    [
        ("user string", ["ünïcödé"]),
        ("raw binary", [b"\xff\x00"]),
        ("n bigint", [-7]),
        ("n int", [2**31 - 1]),
        ("x double", [2.5]),
        ("user string, n bigint", ["a,b", 3]),
        ("user string, n int", [None, 3]),
        ("user string, ok boolean", ["a", True]),
    ],
)
def test_a_key_comes_back_as_the_sink_writes_it(kinds: str, values: list[Any]) -> None:
    columns = schema(kinds)
    [key] = encode_keys([pa.array([value], column.type) for value, column in zip(values, columns, strict=True)]).to_pylist()
    assert list(decode_key(key, list(columns)).values()) == values


def test_keys_of_others_are_understood_too() -> None:
    assert decode_key(b'{"id":5,"more":1}', list(schema("id bigint"))) == {"id": 5}
    assert decode_key(b"5", list(schema("id bigint"))) == {"id": 5}
    for key in (b"five", b"\xff" * 3, b"[1,2]", b""):
        with pytest.raises(ValueError, match="the key"):
            decode_key(key, list(schema("id bigint")))


def test_tombstones_remove_their_key_and_those_without_one_are_bad() -> None:
    source = hr.kafka("users", servers="nowhere").as_table(("id",))
    messages = [Message(b"\x00" * 7 + b"\x01", b'{"id":1,"name":"a"}', 0), Message(b"\x00" * 7 + b"\x02", None, 1), Message(None, None, 2)]
    batch = Records(source, schema("id bigint, name string")).batch(messages)
    assert batch.column("id").to_pylist() == [1, 2, None]
    assert batch.column("_op").to_pylist()[:2] == [1, -1]
    [*fine, bad] = batch.column("_problem").to_pylist()
    assert (fine, "tombstone" in bad) == ([None, None], True)


def test_of_records_without_a_time_the_one_with_the_higher_offset_counts_however_tasks_shared_them() -> None:
    spec = TableSpec(("id",), None)
    frame = pl.DataFrame(
        {"id": [1, 1, 1], "name": ["last", "first", "middle"], "_offset": [9, 3, 5], TIME: pl.Series([None] * 3, dtype=pl.Int64)}
    )
    entered = spec.enter(frame, EpochTime(1, BEGINNING, BEGINNING, False, BEGINNING, BEGINNING))
    assert entered.rows.get_column("name").to_list() == ["last"]


def test_a_table_of_another_system_is_declared_with_a_key_and_loses_rows() -> None:
    app = hr.App("shop")
    users = app.table("users", "id bigint, name string", key="id", source=hr.kafka("users", servers="nowhere"))
    app.view("names", users)
    with hr.TestDriver(app) as driver:
        driver.send("users", [{"id": 1, "name": "ada"}, {"id": 2, "name": "bob"}])
        driver.remove("users", [{"id": 2}])
        assert driver.rows("names") == [{"id": 1, "name": "ada"}]
    with pytest.raises(hr.PlanError, match="no source that tells what is removed"):
        app.table("others", "id bigint", key="id", source=None)
