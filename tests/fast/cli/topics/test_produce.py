"""`headrace produce`."""

import os
import subprocess
import sys
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.log import Log
from tests.support.processes import PATIENCE

SCHEMA = "url string not null, price decimal(10,2), viewed_at timestamp"


@pytest.fixture(autouse=True)
def topics(log):
    log.create_topic("views", schema=SCHEMA, key="url", time="viewed_at")
    log.create_topic("raw")
    log.create_topic("plain", schema="url string, n int")


def urls(log: Log, topic: str = "views") -> list[str]:
    return log.read(topic, columns=["url"])["url"].to_pylist()


def test_records_come_from_arguments(headrace, log):
    answer = headrace("produce", "views", '{"url": "/a", "price": 1.5}', '{"url": "/b"}')
    assert answer.rows == [{"topic": "views", "stored": 2, "skipped": 0}]
    assert urls(log) == ["/a", "/b"]


def test_a_person_reads_how_many_records_are_stored(headrace, log, monkeypatch):
    monkeypatch.setattr("headrace.cli.render.for_programs", lambda as_json: as_json)
    assert headrace("produce", "views", '{"url": "/a"}').err == "1 record stored in views\n"
    assert headrace("produce", "views", '{"url": "/a"}', '{"url": "/b"}').err == "2 records stored in views\n"


def test_records_come_from_stdin_one_a_line(headrace, log):
    headrace("produce", "views", stdin='{"url": "/ü", "viewed_at": "2026-01-01T01:00:00+01:00"}\r\n\n{"url": "/b"}')
    stored = log.read("views").to_pylist()
    assert [row["url"] for row in stored] == ["/ü", "/b"]
    assert stored[0]["_time"].isoformat() == "2026-01-01T00:00:00+00:00"


def test_a_bad_line_is_named_and_ends_it_with_what_came_before_stored(headrace, log):
    answer = headrace("produce", "views", stdin='{"url": "/a"}\n{"url": "/b"}\n{"url": "/c", "price": "cheap"}\n{"url": "/d"}\n')
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.splitlines()[:2] == [
        "error: line 3: column 'price': 'cheap' is not of type decimal(10,2)",
        "  why: it was not stored; 2 records before it were",
    ]
    assert urls(log) == ["/a", "/b"]


def test_bad_lines_are_skipped_on_request_and_counted(headrace, log):
    lines = [
        "no json",
        '{"url": "/a"}',
        "[]",
        '{"link": "/b"}',
        '{"price": 1}',
        '{"url": "/c", "viewed_at": "2999-01-01"}',
        '{"url": "/d"}',
    ]
    answer = headrace("produce", "views", "--skip-bad", stdin="\n".join(lines))
    assert answer.code == 0
    assert answer.rows == [{"topic": "views", "stored": 2, "skipped": 5}]
    assert [line.split(":")[0] for line in answer.err.splitlines()] == [f"line {number} is skipped" for number in (1, 3, 4, 5, 6)]
    assert urls(log) == ["/a", "/d"]


def test_after_ten_bad_lines_the_rest_is_only_counted(headrace):
    answer = headrace("produce", "views", "--skip-bad", stdin="bad\n" * 50)
    assert answer.rows[0]["skipped"] == 50
    assert len(answer.err.splitlines()) == 11


def test_lines_of_a_topic_of_bytes_are_sent_as_they_are(headrace, log):
    headrace("produce", "raw", stdin=b'hello\n{"not": "parsed"\n\xff\xfe\n')
    assert log.read("raw")["value"].to_pylist() == [b"hello", b'{"not": "parsed"', b"\xff\xfe"]


def test_a_separator_parts_key_and_value(headrace, log):
    assert headrace("produce", "raw", "-K", ":", stdin="a:1\nb:2:3\n").code == 0
    assert log.read("raw", columns=["_key", "value"]).to_pylist() == [{"_key": b"a", "value": b"1"}, {"_key": b"b", "value": b"2:3"}]
    assert "line 1: there is no ':' between key and value" in headrace("produce", "raw", "-K", ":", stdin="none\n").err


def test_fields_name_key_and_time_where_the_topic_has_no_such_columns(headrace, log):
    headrace("produce", "plain", "-k", "user", "-t", "at", '{"url": "/a", "n": 1, "user": "u1", "at": "2026-01-01T00:00:00Z"}')
    (row,) = log.read("plain", columns=["url", "_key", "_time"]).to_pylist()
    assert (row["url"], row["_key"], row["_time"].year) == ("/a", b"u1", 2026)
    assert "line 1: there is no 'user' in it" in headrace("produce", "plain", "-k", "user", '{"url": "/a"}').err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["views", "-k", "url"], "topic 'views' has its key in column url"),
        (["views", "-t", "viewed_at"], "topic 'views' has its time in column viewed_at"),
        (["views", "-K", ":"], "topic 'views' has columns"),
        (["nothing", "{}"], "there is no topic 'nothing'"),
        (["views", "--acks", "2", "{}"], "acks='2' is not known"),
        (["views", "--parquet", __file__], "cannot be read as Parquet"),
    ],
)
def test_what_cannot_be_done_is_told(headrace, arguments, said):
    answer = headrace("produce", *arguments)
    assert answer.code == 1
    assert said in answer.err


def test_a_command_line_without_meaning_is_refused(headrace, tmp_path):
    (tmp_path / "x.csv").write_text("url\n")
    assert headrace("produce", "views", "{}", "--csv", tmp_path / "x.csv").code == 2
    assert headrace("produce", "views", "--csv", tmp_path / "missing.csv").code == 2
    assert headrace("produce", "views", "--parquet", tmp_path / "missing.parquet").code == 2


def test_rows_come_from_csv(headrace, log, tmp_path):
    file = tmp_path / "views.csv"
    file.write_text('url,price,viewed_at\n/a,1.50,2026-01-01\n"/with, comma",,2026-01-02T10:00:00Z\n', encoding="utf-8-sig")
    assert headrace("produce", "views", "--csv", file).rows == [{"topic": "views", "stored": 2, "skipped": 0}]
    stored = log.read("views").to_pylist()
    assert [row["url"] for row in stored] == ["/a", "/with, comma"]
    assert [str(row["price"]) for row in stored] == ["1.50", "None"]


def test_bad_rows_of_csv_have_their_line(headrace, log, tmp_path):
    file = tmp_path / "views.csv"
    file.write_text("url,price\n/a,1\n/b\n/c,1,2\n/d,dear\n/e,2\n")
    answer = headrace("produce", "views", "--csv", file, "--skip-bad")
    assert answer.rows[0] == {"topic": "views", "stored": 2, "skipped": 3}
    assert [line.split(" is")[0] for line in answer.err.splitlines()] == ["line 3", "line 4", "line 5"]
    assert urls(log) == ["/a", "/e"]
    assert "line 3: it does not have the 2 cells of the first line" in headrace("produce", "views", "--csv", file).err


def test_a_csv_header_must_name_columns_of_the_topic(headrace, log, tmp_path):
    for header in ("link,price", "url,url"):
        (tmp_path / "bad.csv").write_text(f"{header}\n/a,1\n")
        answer = headrace("produce", "views", "--csv", tmp_path / "bad.csv", "--skip-bad")
        assert answer.code == 1
        assert "error: line 1: " in answer.err
    assert urls(log) == []


def test_a_number_that_no_float_can_hold_is_refused(headrace, log):
    log.create_topic("sizes", schema="size double")
    assert "1e400 is too large a number" in headrace("produce", "sizes", '{"size": 1e400}').err
    assert headrace("produce", "sizes", '{"size": 1e300}').code == 0


def test_rows_of_parquet_that_do_not_fit_are_told_with_the_rows_before_them_that_were_stored(headrace, log, tmp_path):
    rows = pa.table({"url": [None if n == 70_000 else f"/{n}" for n in range(80_000)]})
    pq.write_table(rows, tmp_path / "p.parquet")
    refused = headrace("produce", "views", "--parquet", tmp_path / "p.parquet").err
    assert "rows 50,001 to 80,000 of" in refused
    assert "none of these was stored, and the 50,000 rows before them were" in refused
    assert len(urls(log)) == 50_000
    pq.write_table(rows.slice(70_000), tmp_path / "p.parquet")
    assert "nothing was stored" in headrace("produce", "views", "--parquet", tmp_path / "p.parquet").err


def test_rows_come_from_parquet(headrace, log, tmp_path):
    pq.write_table(pa.table({"url": [f"/{n}" for n in range(120_000)], "n": pa.array(range(120_000), pa.int64())}), tmp_path / "p.parquet")
    assert headrace("produce", "plain", "--parquet", tmp_path / "p.parquet").rows[0]["stored"] == 120_000
    assert urls(log, "plain") == [f"/{n}" for n in range(120_000)]
    pq.write_table(pa.table({"url": ["/k"], "user": ["u"]}), tmp_path / "k.parquet")
    assert headrace("produce", "plain", "--parquet", tmp_path / "k.parquet", "-k", "user").code == 0
    assert log.read("plain", columns=["_key"])["_key"].to_pylist()[-1] == b"u"
    assert "has no column 'user'" in headrace("produce", "plain", "--parquet", tmp_path / "k.parquet").err


def test_what_tail_prints_can_be_produced_to_another_topic(headrace, log):
    log.create_topic("copy", schema=SCHEMA, key="url", time="viewed_at")
    headrace("produce", "views", '{"url": "/a", "price": 1.5, "viewed_at": "2026-01-01T00:00:00.000001Z"}', '{"url": "/b"}')
    assert headrace("produce", "copy", stdin=headrace("tail", "views", "--from", "beginning").out).code == 0
    assert log.read("copy").drop_columns(["_offset"]) == log.read("views").drop_columns(["_offset"])


def test_a_slow_pipe_is_stored_as_it_comes(log, home):
    with subprocess.Popen(
        [sys.executable, "-m", "headrace", "produce", "raw"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "HEADRACE_HOME": str(home)},
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"first\n")
        process.stdin.flush()
        assert log.consumer("raw").poll(timeout=timedelta(seconds=PATIENCE))["value"].to_pylist() == [b"first"]
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
