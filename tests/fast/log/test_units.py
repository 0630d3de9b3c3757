"""Values as they are sent: timestamps with and without a unit, and what does not fit its column."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from headrace.core.errors import SchemaError
from headrace.log import Log

ANY_TIME = {"message.timestamp.after.max.ms": -1}


@pytest.mark.parametrize(("unit", "number"), [("s", 1_767_268_800), ("ms", 1_767_268_800_000), ("us", 1_767_268_800_000_000)])
def test_a_timestamp_that_says_its_unit_takes_numbers_and_text(log: Log, unit: str, number: int):
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    log.create_topic("clicks", schema=f"url string, at timestamp({unit}), w struct<at:timestamp({unit})>", time="at", config=ANY_TIME)
    assert log.topic("clicks").columns.field("at").type == pa.timestamp("us", "UTC")
    with log.producer() as producer:
        for at in (number, float(number), noon, "2026-01-01T12:00:00Z", "2026-01-01T14:00:00+02:00"):
            producer.send("clicks", {"at": at, "w": {"at": at}})
        producer.send("clicks", {"url": "/"}, time=number)
        producer.send_table("clicks", pa.table({"at": [number], "w": [{"at": number}]}))
        producer.send_table("clicks", pa.table({"at": ["2026-01-01T12:00:00Z"]}))
        producer.send_table("clicks", pa.table({"at": pa.array([noon], pa.timestamp("ms", "UTC"))}))
    stored = Log(log.path).read("clicks")
    assert stored["at"].to_pylist() == [noon] * 9
    assert [row["at"] for row in stored["w"].to_pylist() if row] == [noon] * 6


def test_a_table_of_numbers_is_no_time_without_a_unit(log: Log):
    log.create_topic("clicks", schema="at timestamp, w struct<at:timestamp>, day date")
    with log.producer() as producer:
        for table in (pa.table({"at": [1_767_268_800]}), pa.table({"w": [{"at": 5}]}), pa.table({"day": pa.array([5], pa.int32())})):
            with pytest.raises(SchemaError, match=r"is a number without a unit|a number is not of type date"):
                producer.send_table("clicks", table)


def test_a_value_that_does_not_fit_is_told_with_its_column(log: Log):
    log.create_topic("clicks", schema="url string, n int, tags array<string>")
    for record, reason in [
        ({"url": 5}, "column 'url': 5 is not of type string"),
        ({"n": "5"}, "column 'n': '5' is not of type int"),
        ({"n": 2**40}, "column 'n': 1099511627776 is not of type int"),
        ({"tags": "abc"}, "column 'tags': 'abc' is not of type array<string>"),
    ]:
        with pytest.raises(SchemaError, match=reason), log.producer() as producer:
            producer.send("clicks", record)
