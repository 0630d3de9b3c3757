"""`headrace match`: the patterns of an app, and their automata."""

from pathlib import Path

import pytest

APP = """
import headrace as hr

app = hr.App("orders", home={home!r})
events = app.stream("events", schema="id string, kind string, at timestamp", key="id", time="at", watermark=hr.bounded("30 seconds"))
unpaid = events.match(by="id", pattern="ordered+ !paid", define={{"ordered": "kind = 'o'", "paid": "kind = 'p'"}}, within="1 hour")
more = events.match(by="id", pattern="^ A {{- B -}}", define={{"B": "at > last(A.at)"}}, within="1 hour")
app.sink(unpaid, hr.log("unpaid"), name="unpaid")
app.sink(more, hr.log("more"), name="more")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(APP.format(home=str(tmp_path / "home")))
    return path


def test_match_tells_how_each_pattern_is_evaluated(headrace, file):
    first, second = headrace("match", file).rows
    assert first["pattern"] == "pattern ordered+ !paid with ordered as kind = 'o', paid as kind = 'p' within 1 hour"
    assert first["evaluated"] == "one table of states, over all keys at once"
    assert second["evaluated"].startswith("tried row by row, key by key: B looks at matched rows")


def test_match_explain_draws_the_automaton(headrace, file):
    rows = headrace("match", file, "--explain").rows
    drawn = [(row["place"], row["variable"], row["condition"], row["then"]) for row in rows]
    assert drawn == [
        ("begin", "", "", ["1"]),
        ("1", "ordered", "kind = 'o'", ["1", "match if no paid comes until 1 hour after the first row"]),
        ("begin", "", "", ["nothing"]),
        ("begin", "", "no row of the key in the 1 hour before", ["1"]),
        ("1", "A", "any row", ["2"]),
        ("2", "B", "at > last(A.at), not shown", ["match"]),
    ]


def test_a_drawing_is_lines_a_place(file):
    from headrace.cli.app_file import app_in
    from headrace.operators.patterns.drawing import drawings_of

    drawing, _ = drawings_of(app_in(str(file)).plan().nodes)
    assert str(drawing).splitlines()[3:] == [
        "  begin                   -> 1",
        "  1: ordered  kind = 'o'  -> 1, or else match if no paid comes until 1 hour after the first row",
    ]


@pytest.mark.parametrize("option", ["--json", "--explain"])
def test_an_app_without_a_pattern_is_told_what_to_do(headrace, tmp_path, option):
    path = tmp_path / "plain.py"
    without = [line for line in APP.format(home=str(tmp_path / "home")).splitlines() if "match" not in line and "app.sink" not in line]
    path.write_text("\n".join([*without, "app.sink(events, hr.log('copies'), name='copies')"]))
    answer = headrace("match", path, option)
    assert (answer.code, answer.rows) == (0, [])
    assert "no pattern feeds a view or sink of app 'orders': find one with stream.match(...)" in answer.err
