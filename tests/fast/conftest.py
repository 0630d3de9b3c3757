"""Files of fast tests live in memory where the machine allows it: a sync costs nothing there, and durability is tested elsewhere."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    home = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="headrace-", dir=home, ignore_cleanup_errors=True) as directory:
        yield Path(directory).resolve()
