"""Small files of a job that are replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path

from headrace.log.disk import sync_directory


def replace_text(file: Path, text: str) -> None:
    """Put a file in place: whoever reads it sees the old text or the new, never a part of one, also after a crash."""
    fresh = file.with_name(f"{file.name}.new")
    with fresh.open("w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    fresh.rename(file)
    # Else a power cut could bring the old one back, and with it a number that a run has had already.
    sync_directory(file.parent)
