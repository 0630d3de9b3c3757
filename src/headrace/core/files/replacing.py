"""Small files of a job that are replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path

from headrace.core.files.disk import sync_directory


def replace_text(file: Path, text: str) -> None:
    """Replace a file: a reader sees the old text or the new, never a part of one, also after a crash."""
    fresh = file.with_name(f"{file.name}.new")
    with fresh.open("w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    fresh.rename(file)
    # Otherwise a power cut could bring back the old file, and with it a run number that was already used.
    sync_directory(file.parent)
