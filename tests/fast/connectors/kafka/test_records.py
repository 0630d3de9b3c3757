"""Kafka's records as batches, and what a topic can be declared to give."""

import json
import pickle
from datetime import UTC, datetime

import pytest
from confluent_kafka import Message

import headrace as hr
from headrace.connectors.kafka.records import Records
from headrace.core.columns.schema import schema
from headrace.core.errors import SchemaError, SettingsError


def message(value: bytes | None, offset: int = 0, **more) -> Message:
    return Message(topic="t", partition=3, offset=offset, value=value, **{"timestamp": (1, 1_767_268_800_123), **more})


def rows(source, columns: str, *messages: Message) -> list[dict]:
    batch = Records(source, schema(columns)).batch(messages)
    batch.validate(full=True)
    return batch.to_pylist()


def test_a_record_has_its_columns_and_its_place():
    assert rows(hr.kafka("t", servers="b:1"), "a int", message(b'{"a":1}', 7)) == [
        {"a": 1, "_partition": 3, "_offset": 7, "_problem": None, "_record": None}
    ]


def test_a_bad_record_keeps_its_place_among_the_good_ones_and_all_that_it_was():
    bad = message(b"\xffoops", 8, key=b"k", headers=[("trace", b"\xfe")])
    found = rows(hr.kafka("t", servers="b:1"), "a int", message(b'{"a":1}', 7), bad, message(None, 9), message(b'{"a":2}', 10))
    assert [(row["a"], row["_offset"]) for row in found] == [(1, 7), (None, 8), (None, 9), (2, 10)]
    assert "not UTF-8" in found[1]["_problem"]
    assert json.loads(found[1]["_record"]) == {
        "key": "k", "value": {"base64": "/29vcHM="}, "timestamp": 1_767_268_800_123, "headers": [["trace", {"base64": "/g=="}]]
    }  # fmt: skip
    assert "tombstone" in found[2]["_problem"]


def test_key_timestamp_and_headers_are_columns_where_they_are_asked_for():
    source = hr.kafka("t", servers="b:1", key_as="card", timestamp_as="sent_at", headers_as="headers")
    columns = "card string, a int, sent_at timestamp, headers array<struct<name:string,value:binary>>"
    [row, bad] = rows(source, columns, message(b'{"a":1,"card":"other"}', key=b"4711", headers=[("h", b"1"), ("h", None)]),
                      message(b'{"a":1}', key=b"\xff"))  # fmt: skip
    assert row["card"] == "4711"
    assert row["sent_at"] == datetime(2026, 1, 1, 12, 0, 0, 123_000, tzinfo=UTC)
    assert row["headers"] == [{"name": "h", "value": b"1"}, {"name": "h", "value": None}]
    assert bad["_problem"] == "the key is not UTF-8 text"


def test_bytes_and_text_are_taken_as_they_are():
    assert rows(hr.kafka("t", servers="b:1", format="bytes"), "line binary", message(b"\xff"))[0]["line"] == b"\xff"
    good, bad = rows(hr.kafka("t", servers="b:1", format="bytes"), "line string", message(b"a"), message(b"\xff"))
    assert (good["line"], bad["_problem"]) == ("a", "not UTF-8 text")


def test_columns_that_a_topic_cannot_give_are_refused_when_they_are_declared(tmp_path):
    app = hr.App("a", home=tmp_path)
    for source, columns, reason in [
        (hr.kafka("t", servers="b:1", key_as="k"), "a int", "there is no such column"),
        (hr.kafka("t", servers="b:1", key_as="a"), "a int", "is declared as int"),
        (hr.kafka("t", servers="b:1", timestamp_as="a"), "a string", "is declared as string"),
        (hr.kafka("t", servers="b:1", format="bytes"), "a int", "one column of binary or string"),
    ]:
        with pytest.raises(SchemaError, match=reason):
            app.stream(f"s{reason}", columns, source=source)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"start": "beginning"}, "is not a place in a topic"),
        ({"start": datetime(2026, 1, 1)}, "no time zone"),  # noqa: DTZ001
        ({"isolation": "dirty"}, "is not known"),
        ({"rows_per_epoch": 0}, "admits no record"),
        ({"format": "xml"}, "'xml' is not known"),
        ({"settings": {"group.id": "g"}}, "use group="),
        ({"settings": {"enable.auto.commit": "true"}}, "cannot be set"),
    ],
)
def test_settings_without_meaning_are_refused(options, reason):
    with pytest.raises(SettingsError, match=reason):
        hr.kafka("t", servers="b:1", **options)


def test_passwords_show_nowhere_and_travel():
    source = hr.kafka("t", servers="b:1", settings={"sasl.password": "s3same", "ssl.key.password": "op3n", "sasl.username": "me"})
    assert "s3same" not in repr(source)
    assert "op3n" not in repr(source)
    there = pickle.loads(pickle.dumps(source.input(schema("a int"), None, "app")))
    assert there.source.settings["sasl.password"].reveal() == "s3same"
    assert there.group == "headrace-app"
