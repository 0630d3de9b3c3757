"""Of the package and its tests only files with an example in their docstrings are looked through for doctests."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    # To look into a file means to load it, and all that it stands on: half of the time that collecting takes.
    found = yield
    return [one for one in found if not isinstance(one, DoctestModule) or b">>>" in file_path.read_bytes()]
