"""SQL over views: right, bounded, and nothing but views can be reached."""

import os
from pathlib import Path

import polars as pl
import pytest
import sqlglot

from headrace.serve.http.problems import Problem
from headrace.serve.views.shared_runs import SharedRuns
from headrace.serve.views.sql import checked
from headrace.serve.views.sql_functions import NAMES, NODES
from headrace.serve.views.sql_limits import SqlLimits
from headrace.serve.views.sql_processes import SqlProcesses
from tests.support.http_attacks import PATHS
from tests.support.sql_attacks import ESCAPES

ROWS = [{"url": f"/{number:02}", "user": "ada" if number % 2 else "bob", "views": number} for number in range(20)]


@pytest.fixture
def client(totals, serving):
    totals.epoch(ROWS[:10])
    totals.epoch(ROWS[5:], [ROWS[0]])
    with serving(sql=SqlLimits(seconds=2, rows=1_000, answer=1_000_000)) as opened:
        opened.get("/api/v1/views/totals", params={"epoch": 2}).raise_for_status()
        yield opened


def query(client, text):
    return client.post("/api/v1/sql", json={"query": text})


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("select count(*) n, sum(views) s from totals", [{"n": 19, "s": sum(range(20))}]),
        (
            "select user, max(views) m from totals group by user order by user",
            [{"user": "ada", "m": 19}, {"user": "bob", "m": 18}],
        ),
        ("with big as (select * from totals where views > 17) select a.url from big a join totals b using (url) order by 1",
         [{"url": "/18"}, {"url": "/19"}]),
        ("select url, row_number() over (order by views desc) place from totals qualify place <= 2 order by place",
         [{"url": "/19", "place": 1}, {"url": "/18", "place": 2}]),
        ("select upper(user) u, round(avg(views), 1) a from TOTALS where url like '/0%' group by all order by all",
         [{"u": "ADA", "a": 5.0}, {"u": "BOB", "a": 5.0}]),
        ("select count(*) n from totals a join TOTALS b using (url)", [{"n": 19}]),
        ("with totals as (select * from totals where views > 17) select count(*) n from totals", [{"n": 2}]),
        ("with a as (select 1 as n), b as (select n + 1 as n from a) select n from b union all from a order by n",
         [{"n": 1}, {"n": 2}]),
        ("with a as (select 1 as n) select (select max(n) from a) m, count(*) c from totals where exists (from a)", [{"m": 1, "c": 19}]),
        ("with recursive r as (select 1 as n union all select n + 1 from r where n < 3) select sum(n) s from r", [{"s": 6}]),
        ("select date_part('year', date '2026-01-01') y, monthname(date '2026-01-01') m, gcd(4, 6) g",
         [{"y": 2026, "m": "January", "g": 2}]),
    ],
)  # fmt: skip
def test_a_select_over_a_view_is_answered(client, text, rows):
    answer = query(client, text)
    assert answer.status_code == 200, answer.text
    assert answer.json()["rows"] == rows
    assert answer.json()["epochs"] == ({"totals": 2} if "totals" in text.lower() else {})


def test_nothing_but_one_select_over_views_is_answered(client):
    assert len({*ESCAPES, *PATHS}) >= 400
    answered = [(text[:80], answer.text[:200]) for text in ESCAPES if not 400 <= (answer := query(client, text)).status_code < 500]
    assert not answered


def test_a_query_that_takes_too_long_is_ended(client):
    many = ", ".join(f"totals t{number}" for number in range(12))
    answer = query(client, f"select count(*) from {many}")
    assert answer.status_code == 408


def test_a_query_that_cannot_be_interrupted_or_takes_memory_that_is_not_counted_ends_and_others_are_answered():
    # Quadratic in time; and a text of 2 GB, which the database does not count as its memory.
    long = "select levenshtein(repeat('a', 100000), repeat('b', 100000))"
    large = "select length(repeat('x', 2000000000))"
    for text, limits, status in ((long, SqlLimits(seconds=0.5), 408), (large, SqlLimits(process=10**9), 413)):
        queries = SqlProcesses(limits)
        try:
            with pytest.raises(Problem) as refused:
                queries.run(text, _no_view)
            assert refused.value.status == status
            assert queries.run("select 1 as n", _no_view).table.to_pylist() == [{"n": 1}]
        finally:
            queries.close()


def test_modules_of_the_working_directory_and_secrets_of_the_environment_are_not_where_sql_is_answered(client, tmp_path, monkeypatch):
    (tmp_path / "duckdb.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_TOKEN", "c4nary5ecret")
    assert query(client, "select count(*) n from totals").json()["rows"] == [{"n": 19}]
    children = [Path(f"/proc/{pid}") for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]
    (child,) = (child for child in children if b"sql_worker" in (child / "cmdline").read_bytes())
    assert b"API_TOKEN" not in (child / "environ").read_bytes()


def test_the_text_of_a_query_is_not_logged(client, caplog):
    assert query(client, "create secret s (type s3, secret 'c4nary5ecret')").status_code == 400
    assert "c4nary5ecret" not in caplog.text


def test_rows_are_shared_as_long_as_their_run_is_there():
    runs, rows = SharedRuns(), pl.DataFrame({"n": [1]})
    first = runs.of(0, rows).descriptor
    assert runs.of(0, rows).descriptor == first
    runs.keep([1])
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(first)


def test_a_result_that_is_too_long_is_cut_and_says_so(client):
    answer = query(client, "select a.url from totals a, totals b, totals c").json()
    assert (len(answer["rows"]), answer["complete"]) == (1_000, False)


def test_columns_of_one_name_are_told_apart(client):
    rows = query(client, "select a.url, b.url, a.views as url_1 from totals a join totals b using (url) where a.views = 7").json()["rows"]
    assert rows == [{"url": "/07", "url_2": "/07", "url_1": 7}]


def test_an_interval_is_refused_with_what_to_ask_instead(client):
    spans = "select {} from (select timestamp '2026-01-02' - timestamp '2026-01-01' as span)"
    for asked in ("span", "[span]", "{'of': span}"):
        answer = query(client, spans.format(asked))
        assert (answer.status_code, "epoch" in answer.json()["hint"]) == (400, True)
    assert query(client, spans.format("epoch(span) s")).json()["rows"] == [{"s": 86400.0}]


def test_types_that_no_format_has_are_refused_however_deep(client):
    own = ["'1'::variant", "1::union(a int)", "'POINT(1 1)'::geometry", "'1'::bignum", "struct_pack()", "interval 1 day"]
    for value in own:
        for asked in (value, f"[{value}]", f"{{'of': [{value}]}}", f"map {{1: {value}}}"):
            assert (asked, query(client, f"select {asked} as v").status_code) == (asked, 400)
    assert query(client, "select '1'::bignum::varchar v").json()["rows"] == [{"v": "1"}]


def test_a_mistake_in_a_later_row_is_told_like_one_in_the_first(client):
    many = ", ".join(f"totals t{number}" for number in range(4))
    answer = query(client, f"select cast(case when t0.views = 19 then t0.url else '1' end as int) from {many}")
    assert (answer.status_code, "/19" in answer.json()["detail"]) == (400, True)


def test_rows_that_are_too_large_are_refused(client):
    answer = query(client, "select repeat('x', 100000) long from totals")
    assert answer.status_code == 413


@pytest.mark.parametrize("form", ["json", "ndjson", "csv", "arrow", "parquet"])
@pytest.mark.parametrize(
    "value",
    ["timestamp '280000-01-01'", "'infinity'::date", "[timestamp '280000-01-01']::timestamp[1]", "'infinity'::timestamp", "time '12:00:00'",
     "[date '1000000-01-01']::date[1]", "timestamp_ns '2026-01-01 00:00:00'", "[{'at': ['infinity'::timestamp]}]", "null"],
)  # fmt: skip
def test_values_that_no_view_has_are_answered_in_every_format(client, value, form):
    answer = client.post("/api/v1/sql", json={"query": f"select {value} as v"}, params={"format": form})
    assert answer.status_code == 200


def test_a_mistake_is_told_in_the_words_of_the_database(client):
    answer = query(client, "select nothing from totals")
    assert answer.status_code == 400
    assert "nothing" in answer.json()["detail"]
    assert query(client, "select * from others").status_code == 404


def test_every_function_of_the_list_is_one_that_the_parser_makes():
    assert [name for name in sorted(NODES) if not hasattr(sqlglot.exp, name)] == []
    for name in sorted(NAMES):
        calls = [f"select {name}({', '.join('a' * count)})" for count in range(4)]
        assert any(_allowed(call) for call in calls), name


def _allowed(call):
    try:
        checked(call)
    except Problem:
        return False
    return True


def _no_view(name):
    return None
