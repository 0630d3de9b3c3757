"""Files that a job puts in place stay there, also when the machine dies at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.connectors.staging import put_in_place, write_fresh
from headrace.core.files.replacing import replace_text


@pytest.mark.parametrize(
    "put",
    [
        lambda place: replace_text(place, "7"),
        lambda place: put_in_place(write_fresh(pa.table({"n": [1]}), place), place),
    ],
    ids=["a small file of a job", "a file of staged records"],
)
def test_a_file_is_durable_before_its_name_is_there_and_its_name_before_the_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path], None]
) -> None:
    place, synced, sync = tmp_path / "file", list[tuple[int, bool]](), os.fsync

    def noted(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, place.exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    put(place)
    assert synced == [(place.stat().st_ino, False), (tmp_path.stat().st_ino, True)]
