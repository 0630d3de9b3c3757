"""Of the package and its tests only files with an example in their docstrings are looked through for doctests."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from doctest import DocTestParser
from pathlib import Path

import pytest
from _pytest.doctest import DoctestItem, DoctestModule


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    # To look into a file means to load it, and all that it stands on: half of the time that collecting takes.
    found = yield
    return [one for one in found if not isinstance(one, DoctestModule) or b">>>" in file_path.read_bytes()]


@pytest.fixture(autouse=True)
def _streams_of_the_examples(request: pytest.FixtureRequest) -> None:
    """The examples of methods of a stream use the streams that the example of its class declares. Their logs are temporary."""
    if not isinstance(request.node, DoctestItem) or not request.node.name.startswith("headrace.api."):
        return
    from headrace import Stream

    request.getfixturevalue("monkeypatch").setattr(tempfile, "tempdir", str(request.getfixturevalue("tmp_path")))
    namespace = request.getfixturevalue("doctest_namespace")
    for example in DocTestParser().get_examples(str(Stream.__doc__)):
        exec(example.source, namespace)  # noqa: S102 - a docstring of ours
