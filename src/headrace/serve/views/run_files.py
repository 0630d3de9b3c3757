"""Runs of a table in files, so that a restarted server continues where it stopped: a cache, never the only copy.

A file is written once: a large one at once, a small one with the next manifest if it is still needed then. The manifest names the files
of one moment with their checksums; files that it no longer names are removed after it is in place. A cache that is torn or of another topic
is ignored, and the table is read from its topic again.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import google_crc32c

MANIFEST = "manifest.json"
_FORM = 1
_LARGE = 1024 * 1024


class RunFiles:
    """The blobs of one table in a directory; without a directory they are not stored."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._checksums: dict[str, int] = {}
        self._dropped: set[str] = set()
        self._unwritten: dict[str, bytes] = {}
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def get(self, name: str) -> bytes | None:
        """A blob whose checksum is right; None if it is missing or torn."""
        if self._directory is None or name not in self._checksums:
            return None
        file = self._directory / name
        blob = file.read_bytes() if file.is_file() else None
        return blob if blob is not None and google_crc32c.value(blob) == self._checksums[name] else None

    def put(self, name: str, blob: bytes) -> None:
        if self._directory is None:
            return
        self._checksums[name] = google_crc32c.value(blob)
        self._dropped.discard(name)
        if len(blob) < _LARGE:
            self._unwritten[name] = blob
        else:
            (self._directory / name).write_bytes(blob)

    def delete(self, name: str) -> None:
        if self._checksums.pop(name, None) is not None and self._unwritten.pop(name, None) is None:
            self._dropped.add(name)

    def save(self, content: dict[str, Any]) -> None:
        """Store the present blobs, with `content`, for the next start."""
        if self._directory is None:
            return
        for name, blob in self._unwritten.items():
            (self._directory / name).write_bytes(blob)
        self._unwritten.clear()
        fresh = self._directory / f"{MANIFEST}.new"
        fresh.write_text(json.dumps({"form": _FORM, "checksums": self._checksums, **content}), encoding="utf-8")
        fresh.rename(self._directory / MANIFEST)
        for name in self._dropped:
            (self._directory / name).unlink(missing_ok=True)
        self._dropped.clear()

    def load(self) -> dict[str, Any] | None:
        """The content of the last manifest; None if there is none of this form."""
        file = self._directory / MANIFEST if self._directory is not None else None
        if file is None or not file.is_file():
            return None
        try:
            content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            return None
        if content.get("form") != _FORM:
            return None
        self._checksums = dict(content["checksums"])
        return content

    def clear(self) -> None:
        """Forget everything."""
        self._checksums, self._dropped, self._unwritten = {}, set(), {}
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory.mkdir(parents=True, exist_ok=True)
