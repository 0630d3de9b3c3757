"""Spark's own journal in a checkpoint: an entry for each planned epoch, one for each finished one, and the id of the query.

Spark counts its batches from 0, and our epochs count from 1: batch 4 is epoch 5. Next to each entry there may be a checksum of Hadoop's.
"""

from __future__ import annotations

from pathlib import Path

from headrace.core.files.disk import sync_directory, sync_file

OFFSETS, COMMITS = "offsets", "commits"
# The id of the query.
QUERY = "metadata"


def entry(checkpoint: Path, kind: str, batch: int) -> Path:
    return checkpoint / kind / str(batch)


def moments_of(checkpoint: Path, epoch: int) -> tuple[float, float]:
    """When an epoch was planned, and when it was committed, in seconds since 1970. Both entries are removed after a hundred epochs."""
    planned, committed = (entry(checkpoint, kind, epoch - 1).stat().st_mtime for kind in (OFFSETS, COMMITS))
    return planned, committed


def checksum_of(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


class Journal:
    """Makes entries survive a power cut, which Spark does not."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._known = False

    def sync(self, kind: str, epoch: int) -> None:
        """Make the entry of an epoch durable."""
        file = entry(self._checkpoint, kind, epoch - 1)
        _sync(file)
        sync_directory(file.parent)
        if not self._known:
            # Spark has just created these, if the job is new.
            _sync(self._checkpoint / QUERY)
            sync_directory(self._checkpoint)
            sync_directory(self._checkpoint.parent)
            self._known = True


def _sync(file: Path) -> None:
    sync_file(file)
    if (sums := checksum_of(file)).exists():
        sync_file(sums)
