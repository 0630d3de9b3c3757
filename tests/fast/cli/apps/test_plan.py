"""`headrace plan`: what a changed app means for its job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.app import App
from headrace.cli.commands import execute
from headrace.engine.program.compiler import compiled
from headrace.jobs.directory import JobDirectory
from headrace.jobs.evolution.versions import Version

APP = """
import headrace as hr

app = hr.App("shop", home={home!r})
sales = app.stream("sales", "user string, price bigint")
app.view("totals", sales.group("user", ttl=None).agg({aggregates}))
"""


@pytest.fixture
def app_file(tmp_path: Path) -> Path:
    return tmp_path / "app.py"


def _write(file: Path, aggregates: str) -> None:
    file.write_text(APP.format(home=str(file.parent / "home"), aggregates=aggregates), encoding="utf-8")


def _begin(file: Path) -> None:
    """Let the job have begun, as a first run does."""
    namespace: dict[str, App] = {}
    exec(file.read_text(encoding="utf-8"), namespace)
    plan, place = namespace["app"].plan(), JobDirectory(namespace["app"].settings.home, "shop")
    with place.held():
        record = place.begin("", 1)
        version, program = Version.first(plan), compiled(plan, record.shards)
        from dataclasses import replace

        place.fix(replace(record, described=version.described.to_json(), steps=version.steps(program), levels=program.levels))


@pytest.mark.parametrize(
    ("aggregates", "code", "status"),
    [
        ("n='count(*)', total='sum(price)'", 0, "same"),
        ("total='sum( price )', n='count(*)'", 2, "changed"),
        ("n='count(*)'", 2, "changed"),
        ("n='count(*)', total='sum(price)', most='max(price)'", 3, "refused"),
    ],
)
def test_the_exit_code_says_whether_there_is_something_to_accept(
    app_file: Path, capsys: pytest.CaptureFixture[str], aggregates: str, code: int, status: str
) -> None:
    _write(app_file, "n='count(*)', total='sum(price)'")
    assert execute(["plan", str(app_file), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["status"] == "new"
    _begin(app_file)
    before = sorted(app_file.parent.rglob("*"))
    _write(app_file, aggregates)
    assert execute(["plan", str(app_file), "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == status
    assert {decision["name"] for decision in found["decisions"]} == {"sales", "totals/group", "totals"}
    assert sorted(app_file.parent.rglob("*")) == before


def test_a_run_of_a_changed_app_is_refused_with_the_plan(app_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(app_file, "n='count(*)', total='sum(price)'")
    _begin(app_file)
    _write(app_file, "n='count(*)'")
    assert execute(["run", str(app_file), "--until", "caught-up"]) == 1
    said = capsys.readouterr().err
    assert "without sum(price)" in said
    assert "--accept" in said
    _write(app_file, "n='count(*)', most='max(price)'")
    assert execute(["run", str(app_file), "--until", "caught-up", "--accept"]) == 1
    assert "max(price) is new" in capsys.readouterr().err
