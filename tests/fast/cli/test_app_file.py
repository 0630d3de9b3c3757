"""`headrace explain`, `headrace accounting`, and finding the app in a file."""

import pytest

APP = """
import headrace as hr

app = hr.App("pageviews", home={home!r})
views = app.stream("page_views", schema="url string, at timestamp", key="url", time="at", watermark=hr.bounded("30 seconds"))
app.view("per_url", views.where("url is not null").window(hr.tumbling("1 minute"), by="url").agg(views="count(*)"))

if __name__ == "__main__":
    raise SystemExit("a file that is only looked at must not run")
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "app.py"
    path.write_text(APP.format(home=str(tmp_path / "home")))
    return path


def test_explain_tells_what_evaluates_each_step_and_its_state(headrace, file):
    answer = headrace("explain", file)
    assert answer.code == 0
    assert [row["step"] for row in answer.rows] == ["page_views", "page_views.where", "page_views.where.window", "per_url"]
    window = answer.rows[2]
    assert window["does"] == "tumbling 1 minute by url: count(*) as views"
    assert (window["evaluated_by"], window["state"]) == ("headrace", "a row per key and pane of 1 minute")
    assert window["bound"] == "1 minute behind the watermark"


def test_explain_tells_when_sample_events_have_their_results(headrace, file):
    first, _ = headrace("explain", file, "--time").rows
    assert (first["event_time"], first["made_up"]) == ("2026-01-01T12:00:00Z", True)
    assert (first["step"], first["fires_at"], first["closed_by"]) == (
        "page_views.where.window", "2026-01-01T12:01:00Z", "2026-01-01T12:01:30Z",
    )  # fmt: skip


def test_an_app_is_found_by_its_name_or_its_variable(headrace, file):
    file.write_text(file.read_text() + 'other = hr.App("other", home=app.settings.home)\n')
    answer = headrace("explain", file)
    assert answer.code == 1
    assert "declares 2 apps: other, pageviews" in answer.err
    assert headrace("explain", f"{file}:pageviews").code == headrace("explain", f"{file}:app").code == 0


@pytest.mark.parametrize(("text", "said"), [("", "declares 0 apps: none"), (None, "there is no file")])
def test_a_file_without_an_app_is_an_error(headrace, tmp_path, text, said):
    path = tmp_path / "empty.py"
    if text is not None:
        path.write_text(text)
    answer = headrace("run", path)
    assert answer.code == 1
    assert said in answer.err


def test_epochs_of_a_job_that_never_ran_are_none(headrace, file):
    answer = headrace("epochs", file)
    assert answer.rows == [{"output": "per_url", "epoch": None}]
    assert "job 'pageviews' is at epoch 0" in answer.err


def test_accounting_of_a_job_that_never_ran_is_an_error(headrace, tmp_path):
    answer = headrace("accounting", "pageviews")
    assert answer.code == 1
    assert "there is no job 'pageviews'" in answer.err


@pytest.mark.parametrize(
    ("line", "fact", "hint"),
    [
        ("views.groupBy('url')", "raises AttributeError: a Stream has no groupBy: write group(", "headrace --debug"),
        ("views.windw('url')", "raises AttributeError: 'Stream' object has no attribute 'windw'", "did you mean 'window'?"),
        ("hr.tumblng('1 minute')", "raises AttributeError: module 'headrace' has no attribute 'tumblng'", "did you mean 'tumbling'?"),
        ("import no_such_module", "raises ModuleNotFoundError: No module named 'no_such_module'", "install it for"),
        ("import json; json.loads('x')", "raises JSONDecodeError: Expecting value", "headrace --debug"),
        ("app.view('second'", "raises SyntaxError: '(' was never closed: app.view('second'", "headrace --debug"),
        ("hr.bounded('1s', idl='1m')", "bounded(...) has no option 'idl'", "did you mean 'idle'?"),
    ],
)
def test_what_an_app_file_raises_is_told_with_its_line_and_without_a_traceback(headrace, file, line, fact, hint):
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:7], line]))
    answer = headrace("explain", file)
    assert (answer.code, "Traceback" in answer.err) == (1, False)
    assert fact in answer.err
    assert hint in answer.err
    assert f"where: {file}:8" in answer.err


def test_a_home_that_cannot_be_a_directory_is_an_error(headrace, tmp_path):
    (tmp_path / "taken").write_text("a file")
    answer = headrace("topics", "create", "clicks", "--home", tmp_path / "taken")
    assert answer.code == 1
    assert "cannot be a directory: File exists" in answer.err
    assert "name another home" in answer.err
