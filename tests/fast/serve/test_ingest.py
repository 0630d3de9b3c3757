"""Records come in over HTTP: all of a request or none, once for each idempotency key or CloudEvent."""

import base64
import json
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pytest

from headrace.core.columns.schema import schema
from headrace.plan.side_streams import DEAD_LETTER
from headrace.schema.legible import as_json
from headrace.serve.http.limits import ServerLimits

AT = "2026-01-01T12:00:00Z"


@pytest.fixture
def clicks(totals):
    totals.epoch([])
    totals.log.create_topic("clicks", partitions=2, schema="url string not null, at timestamp, n int", key="url", time="at")
    return lambda: sorted(row["url"] for row in totals.log.read("clicks").to_pylist())


def test_an_object_an_array_and_lines_of_json_are_stored(clicks, serving):
    with serving() as client:
        one = client.post("/api/v1/topics/clicks", json={"url": "/a", "at": AT, "n": 1})
        many = client.post("/api/v1/topics/clicks", json=[{"url": "/b", "at": AT}, {"url": "/c"}])
        lines = client.post(
            "/api/v1/topics/clicks", content='{"url": "/d"}\n\n{"url": "/e"}\n', headers={"Content-Type": "application/x-ndjson"}
        )
    assert [answer.status_code for answer in (one, many, lines)] == [201, 201, 201]
    assert (one.json()["stored"], many.json()["stored"], lines.json()["stored"]) == (1, 2, 2)
    assert clicks() == ["/a", "/b", "/c", "/d", "/e"]


def test_a_request_with_the_same_idempotency_key_is_stored_once(clicks, serving):
    rows = [{"url": f"/{number}", "at": AT} for number in range(10)]
    with serving() as client:
        first = client.post("/api/v1/topics/clicks", json=rows, headers={"Idempotency-Key": "order-7"})
    with serving() as client:
        again = client.post("/api/v1/topics/clicks", json=rows, headers={"Idempotency-Key": "order-7"})
    assert (first.json()["stored"], first.json()["repeated"]) == (10, 0)
    assert (again.json()["stored"], again.json()["repeated"]) == (0, 10)
    assert len(clicks()) == 10


def test_other_records_with_the_same_idempotency_key_are_refused_and_not_dropped(clicks, serving):
    headers = {"Idempotency-Key": "order-7"}
    rows = [{"url": f"/{number}", "at": AT} for number in range(10)]
    with serving() as client:
        client.post("/api/v1/topics/clicks", json=rows[:3], headers=headers)
        for other in (rows[:4], rows[:2], rows[5:], [{"at": AT, "url": "/0"}]):
            refused = client.post("/api/v1/topics/clicks", json=other, headers=headers)
            assert refused.status_code == 409
            assert "idempotency key" in refused.json()["detail"]
        again = client.post("/api/v1/topics/clicks", json=[{"at": AT, "url": row["url"]} for row in rows[:3]], headers=headers)
    assert again.json()["repeated"] == 3
    assert clicks() == ["/0", "/1", "/2"]


def test_one_record_that_does_not_fit_keeps_all_of_them_out_and_is_told_with_its_row(clicks, serving):
    with serving() as client:
        answer = client.post("/api/v1/topics/clicks", json=[{"url": "/a"}, {"url": "/b", "n": "x"}, {"at": AT}, {"url": "/c", "z": 1}])
    problem = answer.json()
    assert answer.status_code == 422
    assert [error["row"] for error in problem["errors"]] == [1, 2, 3]
    assert "'n'" in problem["errors"][0]["reason"]
    assert clicks() == []


def test_a_cloudevent_is_stored_once_by_its_source_and_id(clicks, serving):
    event = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "click", "data": {"url": "/a", "at": AT}}
    batch = [event, {**event, "id": "2", "data": {"url": "/b"}}]
    with serving() as client:
        path = "/api/v1/topics/clicks"
        single = client.post(path, content=json.dumps(event), headers={"Content-Type": "application/cloudevents+json"})
        several = client.post(path, content=json.dumps(batch), headers={"Content-Type": "application/cloudevents-batch+json"})
        binary = client.post(
            path, json={"url": "/c"}, headers={"ce-id": "3", "ce-source": "/shop", "ce-type": "c", "ce-specversion": "1.0"}
        )
        lacking = client.post(path, content=json.dumps({"id": "4"}), headers={"Content-Type": "application/cloudevents+json"})
    assert (single.json()["stored"], several.json()["stored"], several.json()["repeated"], binary.json()["stored"]) == (1, 1, 1, 1)
    assert lacking.status_code == 422
    assert clicks() == ["/a", "/b", "/c"]


def test_an_event_in_binary_mode_is_the_same_as_in_structured_mode(clicks, serving):
    attributes = {"specversion": "1.0", "source": "/caf\u00e9 \u20ac", "type": "com.example.someevent", "id": "C234-1234-1234"}
    headers = {f"ce-{name}": quote(value) for name, value in attributes.items()}
    with serving() as client:
        path = "/api/v1/topics/clicks"
        binary = client.post(path, json={"url": "/a"}, headers=headers)
        event = {**attributes, "subject": None, "comexampleothervalue": 5, "datacontenttype": "application/json", "data": {"url": "/a"}}
        kind = {"Content-Type": "application/cloudevents+json; charset=UTF-8"}
        structured = client.post(path, content=json.dumps(event), headers=kind)
        encoded = {**attributes, "id": "2", "data_base64": base64.b64encode(b'{"url": "/b"}').decode()}
        others = [client.post(path, content=json.dumps(one), headers=kind) for one in (encoded, {**encoded, "id": "3", "data_base64": "%"})]
        others.append(client.post(path, content=json.dumps({**encoded, "id": "4", "data": {"url": "/d"}}), headers=kind))
        lacking = [
            client.post(path, json={"url": "/c"}, headers={name: value for name, value in headers.items() if name != left_out})
            for left_out in headers
        ]
    assert (binary.json()["stored"], structured.json()["repeated"]) == (1, 1)
    assert [answer.status_code for answer in others] == [201, 422, 422]
    assert {answer.status_code for answer in lacking} == {422}
    assert clicks() == ["/a", "/b"]


def test_two_cloudevents_are_the_same_only_if_both_source_and_id_are(clicks, serving):
    event = {"specversion": "1.0", "type": "click", "data": {"url": "/"}}
    pairs = [("/shop", "1/2"), ("/shop/1", "2"), ('/sh"op', "1"), ("/shop", "\ud800")]
    events = [{**event, "source": source, "id": number} for source, number in pairs]
    with serving() as client:
        path, kind = "/api/v1/topics/clicks", {"Content-Type": "application/cloudevents+json"}
        answers = [client.post(path, content=json.dumps(event), headers=kind) for event in events]
        keyed = client.post(path, json={"url": "/key"}, headers={"Idempotency-Key": "cloudevent//shop/1"})
        same = client.post(path, content=json.dumps({**events[0], "id": "1"}), headers=kind)
    assert [answer.json()["stored"] for answer in (*answers, keyed, same)] == [1] * 6


def test_a_record_that_the_log_refuses_keeps_all_events_of_a_batch_out_and_is_told_with_its_row(clicks, serving):
    event = {"specversion": "1.0", "source": "s", "type": "t"}
    refused = [{"url": "x" * 2_000_000}, {"url": "/b", "at": "2999-01-01T00:00:00Z"}]
    with serving() as client:
        for number, bad in enumerate(refused):
            batch = [{**event, "id": f"{number}a", "data": {"url": "/a"}}, {**event, "id": f"{number}b", "data": bad}]
            kind = {"Content-Type": "application/cloudevents-batch+json"}
            in_batch = client.post("/api/v1/topics/clicks", content=json.dumps(batch), headers=kind)
            in_array = client.post("/api/v1/topics/clicks", json=[{"url": "/a"}, {"url": "/a"}, bad, {"url": "/a"}])
            assert [answer.status_code for answer in (in_batch, in_array)] == [422, 422]
            assert [[error["row"] for error in answer.json()["errors"]] for answer in (in_batch, in_array)] == [[1], [2]]
    assert clicks() == []


@pytest.mark.parametrize("second", ['{"url": 7}', "{broken"])
def test_rows_of_lines_are_counted_from_zero_whatever_is_wrong_with_them(clicks, serving, second):
    with serving() as client:
        lines = f'{{"url": "/a"}}\n\n{second}\n'
        answer = client.post("/api/v1/topics/clicks", content=lines, headers={"Content-Type": "application/x-ndjson"})
    assert (answer.status_code, [error["row"] for error in answer.json()["errors"]]) == (422, [1])


@pytest.mark.parametrize(
    "record", [{"n": 1, "url": "x", "at": "0001-01-01T00:00:00+14:00"}, {"_key": "\ud800"}, {"d": 10**400}, {"price": "1e999999"}]
)
def test_a_value_beyond_its_type_is_refused(totals, serving, record):
    totals.log.create_topic("wide", schema="url string, at timestamp, n int, d double, price decimal(10,2)")
    with serving() as client:
        answer = client.post("/api/v1/topics/wide", content=json.dumps(record), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["errors"][0]["row"]) == (422, 0)


@pytest.mark.parametrize("body", ["", "{", "[1]", '"text"', '{"url": NaN}', '{"n": 1e400}', "[[]]", "null"])
def test_a_body_that_is_no_record_is_refused_and_nothing_is_stored(clicks, serving, body):
    with serving() as client:
        answer = client.post("/api/v1/topics/clicks", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert clicks() == []


def test_more_writers_than_the_log_takes_are_told_to_come_back(clicks, serving):
    with serving(limits=ServerLimits(ingests=0)) as client:
        answer = client.post("/api/v1/topics/clicks", json={"url": "/a"})
    assert answer.status_code == 429
    assert "Retry-After" in answer.headers


def test_records_are_found_by_offset_time_and_key(clicks, serving, totals):
    totals.log.create_topic("one", schema="url string, at timestamp", key="url", time="at")
    with serving() as client:
        rows = [{"url": f"/{number % 3}", "at": f"2026-01-01T12:00:{number:02}Z"} for number in range(9)]
        client.post("/api/v1/topics/one", json=rows).raise_for_status()
        path = "/api/v1/topics/one/records"
        by_offset = client.get(path, params={"offset": 7}).json()
        by_time = client.get(path, params={"time": "2026-01-01T12:00:06Z", "limit": 1}).json()
        by_key = client.get(path, params={"key": "/1"}).json()
        beyond = client.get(path, params={"offset": 99})
    assert [record["_offset"] for record in by_offset["records"]] == [7, 8]
    assert ([record["_offset"] for record in by_time["records"]], by_time["next"]) == ([6], 7)
    assert [record["_offset"] for record in by_key["records"]] == [1, 4, 7]
    assert beyond.status_code == 404


def test_dead_letters_are_sent_again_once_as_they_are_or_mended(clicks, serving, totals):
    totals.log.create_topic("clicks.dead", schema=DEAD_LETTER)
    with totals.log.producer() as producer:
        for number, record in enumerate(['{"url": "/a"}', '{"url": 7}', "{broken"]):
            producer.send("clicks.dead", {"step": "clicks", "reason": "bad", "partition": 0, "offset": number, "record": record})
    with serving() as client:
        path = "/api/v1/topics/clicks.dead/redrive"
        first = client.post(path, json={}).json()
        again = client.post(path, json={}).json()
        mended = client.post(path, json={"letters": [{"partition": 0, "offset": 1, "record": {"url": "/seven"}}]}).json()
        other = client.post("/api/v1/topics/clicks/redrive", json={})
        missing = client.post(path, json={"letters": [{"partition": 0, "offset": 9}, {"partition": 0, "offset": 2, "record": {}}]}).json()
    assert (first["redriven"], [failed["offset"] for failed in first["failed"]]) == (1, [1, 2])
    assert (again["redriven"], again["repeated"]) == (0, 1)
    assert mended["redriven"] == 1
    assert other.status_code == 409
    assert [(failed["offset"], failed["reason"]) for failed in missing["failed"]] == [
        (2, "record 0: column 'url' has no value, and it is NOT NULL"),
        (9, "there is no such letter"),
    ]
    assert clicks() == ["/a", "/seven"]


def test_dead_letters_with_bytes_and_maps_are_sent_again_as_they_were(totals, serving):
    totals.epoch([])
    columns = schema("id int, raw binary, by map<string,int>")
    totals.log.create_topic("scans", schema=columns)
    totals.log.create_topic("scans.dead", schema=DEAD_LETTER)
    record = {"id": 1, "raw": b"\x00\xff", "by": [("a", 1)]}
    shown = as_json(pl.from_arrow(pa.Table.from_pylist([record], columns)))[0]
    with totals.log.producer() as producer:
        producer.send("scans.dead", {"step": "scans", "reason": "bad", "partition": 0, "offset": 0, "record": shown})
    with serving() as client:
        assert client.post("/api/v1/topics/scans.dead/redrive", json={}).json()["redriven"] == 1
    (stored,) = totals.log.read("scans", columns=["id", "raw", "by"]).to_pylist()
    assert stored == record


def test_a_dead_letter_without_a_record_keeps_no_other_from_being_sent_again(clicks, serving, totals):
    totals.log.create_topic("clicks.dead", schema=DEAD_LETTER)
    with totals.log.producer(linger=None) as producer:
        for record in (None, "not json", '{"url": "/a"}'):
            producer.send("clicks.dead", {"step": "clicks", "reason": "bad", "partition": 0, "offset": 0, "record": record})
    with serving() as client:
        answer = client.post("/api/v1/topics/clicks.dead/redrive", json={}).json()
    assert (answer["redriven"], [failed["offset"] for failed in answer["failed"]]) == (1, [0, 1])
    assert clicks() == ["/a"]
