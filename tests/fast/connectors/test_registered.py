"""Connectors that packages bring, from a real package on a path of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr
from headrace import connectors
from headrace.connectors.registered import _OURS

MODULE = """
from dataclasses import dataclass
from headrace.core.promise import Promise, Takes

@dataclass(frozen=True)
class Archive:
    place: str
    key: tuple = ()
    promise: Promise = Promise(Takes.FACTS, "exactly once", "a place for each epoch", "an epoch at once")

    def check(self, columns, key):
        assert columns.names

    def output(self, columns, key):
        raise AssertionError("nothing runs here")

def archive(place):
    return Archive(place)

number = 7
"""
ENTRIES = """\
[headrace.connectors]
archive = their_sinks:archive
number = their_sinks:number
gone = their_sinks:gone
nowhere = their_other_sinks:archive
redis = their_sinks:archive
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_sinks.py").write_text(MODULE)
    facts = tmp_path / "their_sinks-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: their-sinks\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("package")
def test_a_target_of_an_installed_package_is_found_by_its_name_and_declared_like_any_other() -> None:
    target = hr.connector("archive")("exports")
    app = hr.App("shop")
    app.sink(app.stream("orders", schema="id bigint"), target, name="archive")
    assert "exports" in str(app.plan().outputs[0].target)
    with hr.TestDriver(app) as driver:
        driver.send("orders", [{"id": 1}])
        assert driver.rows("archive") == [{"id": 1}]


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nobody", "there is no connector 'nobody'"),
        ("gone", "'gone' cannot be loaded"),
        ("nowhere", "No module named 'their_other_sinks'"),
        ("number", "'number' is int"),
    ],
)
def test_what_cannot_be_had_is_told(name: str, said: str) -> None:
    with pytest.raises(hr.SettingsError, match=said):
        hr.connector(name)


@pytest.mark.usefixtures("package")
def test_a_name_of_headrace_itself_stays_its_own() -> None:
    assert all(hr.connector(name) is getattr(hr, name) for name in _OURS)


@pytest.mark.parametrize("name", _OURS)
def test_every_connector_is_a_folder_of_its_name_with_the_same_file_names(name: str) -> None:
    folder = Path(connectors.__file__).parent / name
    assert {"declaration.py", "output.py"} <= {file.name for file in folder.iterdir()}
