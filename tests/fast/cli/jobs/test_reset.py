"""`headrace reset`, and commands that only look."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as hr
from headrace.jobs.directory import JobDirectory
from headrace.jobs.start.inputs import create_inputs
from headrace.jobs.start.outputs import create_outputs, topics_of
from headrace.plan.explain import identity

APP = """
import headrace as hr

app = hr.App("{app}")
clicks = app.stream("clicks", schema="url string, at timestamp", time="at", watermark=hr.bounded("0s"))
app.view("{view}", clicks.group("url", ttl=None).agg(n="count(*)"))
app.sink(clicks, hr.log("{app}-kept"))
app.sink(clicks, hr.parquet("{app}-files"))
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return declared(tmp_path, "one")


def declared(folder: Path, app: str, view: str = "per_url") -> Path:
    file = folder / f"{app}.py"
    file.write_text(APP.format(app=app, view=view))
    return file


def begun(home: Path, file: Path) -> hr.App:
    """An app as a run leaves it, with a record in each topic."""
    names: dict[str, hr.App] = {}
    exec(file.read_text(), names)
    app = names["app"]
    plan, place = app.plan(), JobDirectory(home, app.name)
    with place.held():
        place.fix(place.begin(identity(plan), 2, topics={topic.name: topic.kind for topic in topics_of(plan)}))
        create_inputs(app.log, plan)
        create_outputs(app.log, plan, 1)
    (place.checkpoint / "offsets").mkdir(parents=True)
    return app


@pytest.mark.parametrize("command", [["explain"], ["explain", "--time"], ["epochs"], ["reset", "--yes"]])
def test_a_command_that_only_looks_creates_nothing(headrace, home, file, tmp_path, command):
    before = sorted(tmp_path.rglob("*"))
    assert headrace(command[0], file, *command[1:]).code == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert not home.exists()


@pytest.mark.parametrize("command", [["repair"], ["lateness", "clicks", "--app"]])
def test_one_that_finds_nothing_to_look_at_says_so_and_creates_nothing(headrace, home, file, command):
    assert headrace(*command, file).code == 1
    assert not home.exists()


def test_a_reset_lists_asks_and_removes_state_views_and_side_topics(headrace, home, file):
    app = begun(home, file)
    refused = headrace("reset", file, stdin="n\n")
    assert refused.code == 1
    # The question ends in a space, which is a line of its own.
    told = {row["name"]: (row["kind"], row["goes"]) for row in map(json.loads, refused.out.strip().splitlines())}
    assert told == {
        str(home / "jobs" / "one"): ("state", True),
        "per_url": ("view", True),
        "clicks.late": ("side", True),
        "clicks.dead": ("side", True),
        "clicks.sink-2.dead": ("side", True),
        "one.accounting": ("side", True),
        "one.hot-keys": ("side", True),
        "one-kept": ("sink", False),
        "Parquet files in one-files": ("sink", False),
    }
    assert JobDirectory(home, "one").record() is not None
    assert headrace("reset", file, "--yes").code == 0
    assert [topic.name for topic in app.log.topics()] == ["clicks", "one-kept"]
    assert sorted(path.name for path in (home / "jobs" / "one").iterdir()) == ["lock"]
    assert headrace("reset", file, "--yes", "--sinks").code == 0
    assert [topic.name for topic in app.log.topics()] == ["clicks"]


def test_a_reset_leaves_what_another_app_has_and_says_whose_it_is(headrace, home, file, tmp_path):
    begun(home, declared(tmp_path, "other"))
    answer = headrace("reset", file, "--yes")
    assert answer.code == 0
    told = {row["name"]: row["why"] for row in answer.rows}
    assert told["per_url"] == "it is a view of app 'other'"
    assert told["clicks.late"] == "it is a side of app 'other'"
    assert JobDirectory(home, "other").record() is not None


def test_a_job_that_runs_is_not_reset(headrace, home, file):
    begun(home, file)
    waiting = f"""
import sys, pathlib
from headrace.jobs.directory import JobDirectory
with JobDirectory(pathlib.Path({str(home)!r}), "one").held():
    print("held", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", waiting], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        answer = headrace("reset", file, "--yes")
        other.communicate()
    assert (answer.code, "is running already" in answer.err) == (1, True)
    assert JobDirectory(home, "one").record() is not None
