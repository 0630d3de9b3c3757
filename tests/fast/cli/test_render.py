"""People get tables, programs get NDJSON, and remarks never mix with the output."""

import json
import math
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli import render
from headrace.core.errors import PlanError
from headrace.core.secret import Secret
from tests.support.terminal import plain, run_on_terminal

ROWS = "[{'topic': 'clicks', 'records': 1234567, 'compacted': True}, {'topic': 'views', 'records': 7, 'compacted': False}]"
TABLE = f"from headrace.cli import render; render.table({ROWS}, styles={{'clicks': 'green'}})"


def on_terminal(program: str, **environment: str) -> str:
    code, written = run_on_terminal([sys.executable, "-c", program], environment=environment)
    assert code == 0, written
    return written


def test_rows_are_a_table_on_a_terminal():
    written = plain(on_terminal(TABLE))
    lines = [line.split() for line in written.splitlines() if line.strip()]
    assert lines[0] == ["topic", "records", "compacted"]
    assert lines[2:] == [["clicks", "1,234,567", "yes"], ["views", "7", "no"]]


def test_a_terminal_gets_colour_and_no_color_takes_it_away():
    green = "\x1b[32m"
    assert green in on_terminal(TABLE)
    assert green not in on_terminal(TABLE, NO_COLOR="1")


def test_rows_are_ndjson_in_a_pipe():
    written = subprocess.run([sys.executable, "-c", TABLE], capture_output=True, text=True, check=True).stdout
    assert [json.loads(line)["topic"] for line in written.splitlines()] == ["clicks", "views"]


def test_json_is_forced_on_a_terminal():
    written = on_terminal(f"from headrace.cli import render; render.table({ROWS}, as_json=True)")
    assert json.loads(written.splitlines()[0]) == {"topic": "clicks", "records": 1234567, "compacted": True}


def test_an_empty_table_is_a_remark_for_people_and_nothing_for_programs(capsys):
    assert "no topics yet" in on_terminal("from headrace.cli import render; render.table([], empty='no topics yet')")
    render.table([], empty="no topics yet")
    assert capsys.readouterr() == ("", "")


def test_remarks_go_to_stderr_as_they_are(capsys):
    render.note("[bold]3 of 5[/bold] done")
    assert capsys.readouterr() == ("", "[bold]3 of 5[/bold] done\n")


def test_an_error_is_printed_as_fact_why_hint_and_place(capsys):
    render.error(PlanError("join has no bound", why="its state would grow", hint='give within=("0s", "1h") [sic]', where="app.py:3"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "error: join has no bound",
        "  why: its state would grow",
        '  hint: give within=("0s", "1h") [sic]',
        "  where: app.py:3",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 1, 1, 12, tzinfo=UTC), "2026-01-01T12:00:00Z"),
        (date(2026, 1, 1), "2026-01-01"),
        (timedelta(milliseconds=1500), 1.5),
        (Decimal("1.10"), "1.10"),
        (b"text", "text"),
        (b"\xff\x00", "/wA="),
        (Path("/data"), "/data"),
        (math.inf, None),
        ({"a": [1, (math.nan, b"x")]}, {"a": [1, [None, "x"]]}),
        (Secret("canary"), "Secret(***)"),
    ],
)
def test_every_kind_of_value_has_a_json_form(value, expected):
    assert json.loads(render.to_json({"value": value})) == {"value": expected}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes() | st.decimals() | st.timedeltas(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=4))
def test_any_row_is_one_line_of_strict_json(row):
    line = render.to_json(row)
    assert "\n" not in line
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize("width", [40, 120])
def test_records_that_are_wider_than_the_terminal_stand_one_below_the_other(monkeypatch, capsys, width):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    place = {"_partition": 0, "_offset": 7, "_time": datetime(2026, 1, 1, tzinfo=UTC)}
    row = {"url": "/", "reason": "every window of the record is closed", **place}
    render.records([row])
    lines = [line for line in plain(capsys.readouterr().out).splitlines() if line.strip()]
    if width == 120:
        assert [line.split() for line in lines[:1]] == [["url", "reason", "partition", "offset", "time"]]
    else:
        assert [line.rstrip() for line in lines] == [
            "0:7 2026-01-01T00:00:00Z", "url     /", "reason  every window of the record is", "        closed",
        ]  # fmt: skip
