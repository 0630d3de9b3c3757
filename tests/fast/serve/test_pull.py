"""A view is asked over HTTP: rows by filter, order, page and key, in several formats, never half of an epoch."""

import io
from datetime import UTC, date, datetime, timedelta
from itertools import islice

import pyarrow as pa
import pytest

import headrace as hr
from headrace.core.errors import ConnectorError

ROWS = [{"url": f"/{number:02}", "user": "ada" if number % 2 else "bob", "views": number} for number in range(20)]


def test_a_view_is_listed_with_its_columns_key_and_epoch(totals, serving):
    epoch = totals.epoch(ROWS)
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": epoch}).raise_for_status()
        (listed,) = client.get("/api/v1/views").json()
    assert (listed["name"], listed["job"], listed["key"], listed["rows"], listed["epoch"]) == ("totals", "totals-job", ["url"], 20, 1)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"views.gt": "17"}, [18, 19]),
        ({"views.ge": "17", "order": "-views"}, [19, 18, 17]),
        ({"views": "3"}, [3]),
        ({"views.in": "3,5,99"}, [3, 5]),
        ({"user": "ada", "views.lt": "4"}, [1, 3]),
        ({"user.ne": "ada", "views.le": "2"}, [0, 2]),
        ({"url.prefix": "/1", "limit": "2"}, [10, 11]),
        ({"user.null": "true"}, []),
        ({"url": "/07"}, [7]),
        ({"order": "user,-views", "limit": "3"}, [19, 17, 15]),
    ],
)
def test_rows_are_filtered_ordered_and_limited(totals, serving, asked, expected):
    epoch = totals.epoch(ROWS)
    with serving() as client:
        answer = client.get("/api/v1/views/totals", params={"epoch": epoch, **asked}).json()
    assert [row["views"] for row in answer["rows"]] == expected


@pytest.mark.parametrize("order", ["views", "-views", "user,-views", "-user"])
def test_pages_hold_every_row_once_in_the_order_asked_for(totals, serving, order):
    rows = [*ROWS, {"url": "/x", "user": None, "views": None}, {"url": "/y", "user": None, "views": 3}]
    epoch = totals.epoch(rows)
    with serving() as client:
        whole = client.get("/api/v1/views/totals", params={"epoch": epoch, "order": order, "limit": 100}).json()["rows"]
        found, cursor = [], None
        while True:
            asked = {"order": order, "limit": 3, **({"cursor": cursor} if cursor else {})}
            page = client.get("/api/v1/views/totals", params=asked).json()
            found += page["rows"]
            cursor = page["next"]
            if cursor is None:
                break
    assert len(found) == len(rows)
    assert found == whole


def test_a_key_gives_its_row_and_a_prefix_of_the_key_gives_all_rows_that_begin_so(written, serving):
    view = written("user string, day date, n int", ("user", "day"))
    epoch = view.epoch([{"user": user, "day": date(2026, 1, day), "n": day} for user in ("a/b", "c") for day in (2, 1)])
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": epoch}).raise_for_status()
        assert client.get("/api/v1/views/totals/a%2Fb/2026-01-02").json() == {"user": "a/b", "day": "2026-01-02", "n": 2}
        assert [row["n"] for row in client.get("/api/v1/views/totals/a%2Fb").json()] == [1, 2]
        missing = client.get("/api/v1/views/totals/c/2026-01-09")
        wrong = client.get("/api/v1/views/totals/c/yesterday")
    assert missing.status_code == 404
    assert wrong.status_code == 400
    assert "is date" in wrong.json()["detail"]


def test_rows_come_as_json_csv_lines_and_arrow(totals, serving):
    epoch = totals.epoch(ROWS[:2])
    with serving() as client:
        path = f"/api/v1/views/totals?epoch={epoch}"
        csv = client.get(path, headers={"Accept": "text/csv"})
        lines = client.get(path, headers={"Accept": "application/x-ndjson"})
        arrow = client.get(path, headers={"Accept": "application/vnd.apache.arrow.stream"})
        unknown = client.get(path, headers={"Accept": "image/png"})
    assert csv.text.splitlines() == ["url,user,views", "/00,bob,0", "/01,ada,1"]
    assert lines.text.splitlines()[1] == '{"url":"/01","user":"ada","views":1}'
    assert pa.ipc.open_stream(io.BytesIO(arrow.content)).read_all().to_pylist() == ROWS[:2]
    assert unknown.status_code == 406


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("text/csv;q=0, application/json", "application/json"),
        ("application/json;q=0.5, text/csv", "text/csv; charset=utf-8"),
        ("*/*;q=0.1, Text/CSV;q=0.9", "text/csv; charset=utf-8"),
        ("text/*", "text/csv; charset=utf-8"),
        ("text/html, application/xhtml+xml, */*;q=0.8", "application/json"),
        ("application/x-ndjson, application/json", "application/x-ndjson"),
        ("text/event-stream;q=0, */*", "application/json"),
        ("application/json;q=0", "application/problem+json"),
    ],
)
def test_the_format_that_a_client_likes_best_is_given(totals, serving, accept, kind):
    epoch = totals.epoch(ROWS[:1])
    with serving() as client:
        answer = client.get(f"/api/v1/views/totals?epoch={epoch}", headers={"Accept": accept})
    assert (answer.headers["content-type"], answer.status_code) == (kind, 406 if "problem" in kind else 200)


def test_an_epoch_that_is_not_committed_is_not_seen(totals, serving):
    epoch = totals.epoch(ROWS[:1])
    totals.write(ROWS[1:2])
    with serving() as client:
        answer = client.get("/api/v1/views/totals", params={"epoch": epoch}).json()
        assert [row["url"] for row in answer["rows"]] == ["/00"]
        late = client.get("/api/v1/views/totals", params={"epoch": epoch + 1, "wait": "0.2"})
        assert late.status_code == 408
        totals.commit()
        answer = client.get("/api/v1/views/totals", params={"epoch": epoch + 1}).json()
    assert [row["url"] for row in answer["rows"]] == ["/00", "/01"]


def test_an_unchanged_view_is_answered_with_304(totals, serving):
    epoch = totals.epoch(ROWS[:1])
    with serving() as client:
        first = client.get("/api/v1/views/totals", params={"epoch": epoch})
        tag = first.headers["ETag"]
        again = [
            client.get(f"/api/v1/views/totals{key}", headers={"If-None-Match": known})
            for key in ("", "/%2F00")
            for known in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*")
        ]
        # A condition holds for an answer only, not for an error.
        wrong = [client.get(f"/api/v1/views/totals{asked}", headers={"If-None-Match": tag}) for asked in ("?none=1", "/a/b", "?format=x")]
        assert [one.status_code for one in wrong] == [400, 404, 406]
        totals.epoch(ROWS[1:2])
        client.get("/api/v1/views/totals", params={"epoch": epoch + 1}).raise_for_status()
        changed = client.get("/api/v1/views/totals", headers={"If-None-Match": first.headers["ETag"]})
    assert {(one.status_code, one.headers["ETag"], one.headers["Vary"]) for one in again} == {(304, tag, "Accept")}
    assert changed.status_code == 200


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"nothing": "1"}, "no column 'nothing'"),
        ({"views": "many"}, "is bigint"),
        ({"limit": "0"}, "not a number from 1"),
        ({"order": "-nothing"}, "no column 'nothing' to order by"),
        ({"cursor": "???"}, "cursor"),
        ({"epoch": "soon"}, "is not a number"),
        ({"url.null": "perhaps"}, "neither true nor false"),
        ({"views.prefix": "1"}, "only text has a prefix"),
    ],
)
def test_a_question_without_meaning_is_told_so(totals, serving, asked, said):
    totals.epoch(ROWS[:1])
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        answer = client.get("/api/v1/views/totals", params=asked)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]


def test_a_view_that_is_not_there_is_told_with_those_that_are(totals, serving):
    totals.epoch(ROWS[:1])
    with serving() as client:
        client.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        answer = client.get("/api/v1/views/other")
    assert answer.status_code == 404
    assert "totals" in answer.json()["hint"]


def test_conditions_from_python_are_values_of_python(written, serving):
    view = written("id int, name string, ok boolean, at timestamp, raw binary", ("id",))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    view.epoch([
        {"id": 1, "name": None, "ok": True, "at": noon, "raw": b"\xff"},
        {"id": 2, "name": "None", "ok": False, "at": None, "raw": None},
        {"id": 3, "name": "a+b", "ok": None, "at": noon + timedelta(hours=1), "raw": b""},
    ])  # fmt: skip
    conditions = [
        {"name": None}, {"name.ne": None}, {"name": "None"}, {"name": ["a+b", "None"]}, {"id.in": (1, 3)}, {"ok": False}, {"ok": None},
        {"at": noon}, {"at.gt": noon}, {"raw": b"\xff"},
    ]  # fmt: skip
    with serving() as client:
        asked = hr.connect(client.server.url, client.server.tokens.read).view("totals")
        asked.read(epoch=1)
        found = [asked.read(**condition)["id"].to_pylist() for condition in conditions]
        with pytest.raises(ConnectorError, match="cannot be asked"):
            asked.read(name=["a,b"])
        with pytest.raises(ConnectorError, match="cannot be asked"):
            asked.read(name=["a+b", None])
        for name in ("limit", "wait"):
            with pytest.raises(ConnectorError, match=f"'{name}' is not a condition"):
                asked.read(**{name: 5})
        (snapshot,) = islice(asked.messages(name=None), 1)
    assert found == [[1], [2, 3], [2], [2, 3], [1, 3], [2], [3], [1], [3], [1]]
    assert [row["id"] for row in snapshot["rows"]] == [1]
