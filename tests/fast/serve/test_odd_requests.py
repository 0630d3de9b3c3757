"""Requests and values that nobody wrote the server for: each has an answer, and none is an error of the server."""

import base64
import datetime as dt
import json
import math
from decimal import Decimal
from urllib.parse import quote

import polars as pl
import pytest

COLUMNS = "name string, window_start timestamp, big bigint, price decimal(20,4), score double, ok boolean, raw binary, tags array<string>"
NAMES = ["a b", "ü/ß", "a/b/c", "%2F", "日本", "a?b#c", "a+b", "null", "\U0001f600", "a,b", "'; drop", "", None]
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
LONG = "9" * 5_000


def row(place, name):
    return {
        "name": name,
        "window_start": NOON + dt.timedelta(minutes=place),
        "big": 2**53 + 1 + place,
        "price": Decimal("12345678901234.5678"),
        "score": [math.nan, math.inf, -math.inf, -0.0, None][place % 5],
        "ok": [True, False, None][place % 3],
        "raw": bytes([255 - place, 0]),
        "tags": ["x", name],
    }


ROWS = [row(place, name) for place, name in enumerate(NAMES)]


@pytest.fixture
def client(written, serving):
    written(COLUMNS, ("name", "window_start")).epoch(ROWS)
    written("n int, d double", ("d",), name="empty")
    with serving() as client:
        client.get("/api/v1/views/totals?epoch=1")
        yield client


def test_a_window_of_any_name_is_found_by_its_path(client):
    for place, name in enumerate(NAMES[:-1]):
        path = f"{quote(name, safe='')}/{quote(ROWS[place]['window_start'].isoformat(), safe='')}"
        found = client.get(f"/api/v1/views/totals/{path}").json()
        assert (found["name"], found["big"], found["price"]) == (name, 2**53 + 1 + place, "12345678901234.5678")
        assert [found["big"]] == [row["big"] for row in client.get("/api/v1/views/totals", params={"name": name}).json()["rows"]]


def test_a_path_that_is_percent_encoded_where_it_need_not_be_is_read_as_it_means(client):
    key = f"a%20b/{quote(NOON.isoformat(), safe='')}"
    answers = [client.get(f"{start}/{key}") for start in ("/api/v1/%76iews/totals", "/%61pi/v1/views/%74otals", "/api%2Fv1/views/totals")]
    assert [answer.status_code for answer in answers] == [200, 200, 404]
    assert answers[0].json() == answers[1].json() == client.get(f"/api/v1/views/totals/{key}").json()


def test_pages_in_the_order_of_any_type_hold_every_row_once(client):
    for column in ("name", "-name", "-big", "-price", "score", "-score", "ok", "-ok", "raw", "-raw", "-window_start"):
        seen, cursor = [], {}
        while True:
            page = client.get("/api/v1/views/totals", params={"order": column, "limit": 3, **cursor}).json()
            seen += [row["big"] for row in page["rows"]]
            if page["next"] is None:
                break
            cursor = {"cursor": page["next"]}
        assert sorted(seen) == [row["big"] for row in ROWS], column


def test_pages_in_the_order_of_moments_that_no_calendar_has_hold_every_row_once(written, serving):
    far = 9_000_000_000_000_000_000
    frame = pl.DataFrame({
        "id": [1, 2, 3, 4],
        "at": pl.Series([far, -far, 0, None], dtype=pl.Int64).cast(pl.Datetime("us", "UTC")),
        "local": pl.Series([-far, far, None, 0], dtype=pl.Int64).cast(pl.Datetime("us")),
        "day": pl.Series([2_000_000_000, 0, None, -2_000_000_000], dtype=pl.Int32).cast(pl.Date),
    })  # fmt: skip
    view = written("id int, at timestamp, local timestamp_ntz, day date", ("id",))
    view.write_frame(frame.cast({"id": pl.Int32}), pl.Series([False] * 4))
    view.commit()
    orders = {"at": [2, 3, 1, 4], "-at": [1, 3, 2, 4], "local": [1, 4, 2, 3], "day": [4, 2, 1, 3], "-day": [1, 2, 4, 3]}
    with serving() as client:
        client.get("/api/v1/views/totals?epoch=1")
        for order, expected in orders.items():
            seen, cursor = [], {}
            for _ in expected:
                page = client.get("/api/v1/views/totals", params={"order": order, "limit": 1, **cursor}).json()
                seen += [row["id"] for row in page["rows"]]
                cursor = {"cursor": page["next"]}
            assert (order, seen, cursor) == (order, expected, {"cursor": None})


def test_pages_while_rows_change_hold_each_row_that_stays_once(totals, serving):
    rows = [{"url": f"/{number:02}", "user": "ada", "views": number} for number in range(30)]
    totals.epoch(rows)
    with serving() as client:
        seen, cursor, epoch = [], {}, 1
        while True:
            page = client.get("/api/v1/views/totals", params={"limit": 4, "epoch": epoch, **cursor}).json()
            seen += [row["url"] for row in page["rows"]]
            if page["next"] is None:
                break
            # The last row of the page leaves, and others come before and after it.
            gone = next(row for row in rows if row["url"] == seen[-1])
            fresh = [{"url": url, "user": "new", "views": 0} for url in ("/", f"{seen[-1]}+")]
            epoch, cursor = totals.epoch(fresh, [gone]), {"cursor": page["next"]}
    assert len(set(seen)) == len(seen)
    assert set(seen) >= {row["url"] for row in rows}


def test_values_of_any_type_are_compared_as_answers_write_them(client):
    asked = {"big=9007199254740993": 1, "price=12345678901234.5678": 13, "score=nan": 3, "score=inf": 3, "raw=/wA%3D": 1, "name=": 1}
    assert {query: len(client.get(f"/api/v1/views/totals?{query}").json()["rows"]) for query in asked} == asked


def test_an_empty_value_of_a_list_is_null_as_it_is_alone(client):
    alone, among = (client.get(f"/api/v1/views/totals?{query}").json()["rows"] for query in ("ok=", "ok.in=,true"))
    assert alone == [row for row in among if row["ok"] is None]
    assert len(among) == len(alone) + sum(row["ok"] is True for row in ROWS)


def test_nested_values_and_bytes_are_cells_of_csv(client):
    text = client.get("/api/v1/views/totals?format=csv&name=a%20b").text
    found = pl.read_csv(text.encode()).to_dicts()[0]
    assert (json.loads(found["tags"]), base64.b64decode(found["raw"])) == (["x", "a b"], b"\xff\x00")
    assert "NaN" in text


def test_a_moment_without_a_zone_gets_none_in_csv(written, serving):
    view = written("id int, local timestamp_ntz, at timestamp, day date", ("id",))
    view.epoch([{"id": 1, "local": NOON.replace(tzinfo=None), "at": NOON, "day": NOON.date()}])
    with serving() as client:
        client.get("/api/v1/views/totals?epoch=1")
        text = client.get("/api/v1/views/totals?format=csv").text
    assert text.splitlines()[1] == "1,2026-01-01T12:00:00.000000,2026-01-01T12:00:00.000000Z,2026-01-01"


def test_an_empty_view_has_an_answer_in_every_format(client):
    for form in ("json", "csv", "ndjson", "arrow", "parquet"):
        assert client.get(f"/api/v1/views/empty?format={form}").status_code == 200


NESTED = base64.urlsafe_b64encode(b"[" * 5_000).decode()
UNREADABLE = [
    f"epoch={LONG}", f"limit={LONG}", f"big={LONG}", "epoch=٣", "limit=٣", "raw=x", "cursor=%F0%9F%98%80", f"cursor={NESTED}", "price=NaN",
    "window_start=99999-01-01T00:00:00Z",
]  # fmt: skip


def test_a_value_that_cannot_be_read_is_refused(client):
    assert {asked: client.get(f"/api/v1/views/totals?{asked}").status_code for asked in UNREADABLE} == dict.fromkeys(UNREADABLE, 400)


def test_offsets_and_windows_that_no_page_asks_for_are_refused(client):
    asked = [{"since": since} for since in ('{"0":1e999}', "[" * 10_000, '{"0":-1}', '{"0":true}', '{"0":"1"}', '{"x":1}', "5")]
    answers = [client.get("/api/v1/topics/totals/arrivals", params=query) for query in (*asked, {"window": "9" * 18})]
    assert [answer.status_code for answer in answers] == [400] * 8


def test_names_that_no_view_has_leave_nothing_behind(client):
    for number in range(3):
        assert client.get(f"/api/v1/views/none-{number}?epoch=1&wait=0.01").status_code == 404
    assert not [name for name in client.server.hub._signals if name.startswith("none-")]


def test_a_place_that_no_message_has_is_refused_before_anything_is_sent(client):
    for place in ("abc", f"x-{LONG}", "x-1.5", "x-٣"):
        answer = client.get(f"/api/v1/views/totals?since={quote(place)}", headers={"Accept": "text/event-stream"})
        assert answer.status_code == 400


def test_two_views_are_joined_by_sql(client):
    query = "select count(*) as n, sum(t.big) as total from totals t left join empty e on e.d = t.score"
    (answer,) = client.post("/api/v1/sql", json={"query": query}).json()["rows"]
    assert answer == {"n": len(ROWS), "total": sum(row["big"] for row in ROWS)}


def test_a_topic_of_a_view_takes_no_record_from_elsewhere(client):
    answer = client.post("/api/v1/topics/totals", json={"_key": "x", "name": "x"})
    assert answer.status_code == 409


def test_a_batch_of_cloudevents_with_one_that_does_not_fit_stores_nothing(client):
    log = client.server.hub.log
    log.create_topic("clicks", schema="n bigint")
    event = {"specversion": "1.0", "source": "s", "type": "t"}
    good = {**event, "id": "1", "data": {"n": 2**53 + 1}}
    headers = {"Content-Type": "application/cloudevents-batch+json"}
    for bad in ({"n": 1}, {**event, "id": "2", "data": {"n": "x"}}, {**event, "id": "2"}):
        answer = client.post("/api/v1/topics/clicks", content=json.dumps([good, bad]), headers=headers)
        assert (answer.status_code, answer.json()["errors"][0]["row"]) == (422, 1)
    assert log.read("clicks").num_rows == 0
    assert client.post("/api/v1/topics/clicks", content=json.dumps([good, good]), headers=headers).json()["stored"] == 1
    assert log.read("clicks")["n"].to_pylist() == [2**53 + 1]


def test_records_with_keys_that_are_no_text_are_shown(totals, serving):
    totals.log.create_topic("raw", schema="content binary, n bigint")
    with totals.log.producer(linger=None) as producer:
        producer.send("raw", {"content": b"\x00\xff", "n": 2**60 + 1}, key=b"\xff\xfe")
        producer.send("raw", {"content": None, "n": None})
        producer.send("raw", {"content": b"text", "n": 1}, key="schlüssel")
    with serving() as client:
        answer = client.get("/api/v1/topics/raw/records")
    assert answer.status_code == 200
    found = {row["_offset"]: (row["_key"], row["content"], row["n"]) for row in answer.json()["records"]}
    assert found == {0: ("//4=", "AP8=", 2**60 + 1), 1: (None, None, None), 2: ("schlüssel", "dGV4dA==", 1)}
