"""The journal of a checkpoint, in Spark's form: an entry for each planned epoch, one for each finished one, and the id of the query.

Spark counts its batches from 0, and our epochs count from 1: batch 4 is epoch 5. Next to each entry there may be a checksum of Hadoop's.

Spark writes the entries of its own queries, and the loop of epochs (`spark/loop/epoch_loop.py`) writes others: each continues where the
other stopped. An entry of the loop is one file, with a checksum inside: to sync a second one took as long as the first.
"""

from __future__ import annotations

import json
import os
import time
import uuid
import zlib
from pathlib import Path

from headrace.core.errors import JobError
from headrace.core.files.disk import sync_directory, sync_file
from headrace.core.files.replacing import replace_text

OFFSETS, COMMITS = "offsets", "commits"
# The id of the query.
QUERY = "metadata"
# As many entries of each kind as Spark keeps (spark.sql.streaming.minBatchesToRetain): a repair may go back to each of them.
RETAINED = 100
# The checksum of a plan, among the settings that Spark stores with it.
CHECKSUM = "headrace.checksum"
_COMMITTED = f"v1\n{json.dumps({'nextBatchWatermarkMs': 0})}"


def entry(checkpoint: Path, kind: str, batch: int) -> Path:
    return checkpoint / kind / str(batch)


def batches(checkpoint: Path, kind: str) -> list[int]:
    """The numbers of the batches that have an entry, in no order."""
    try:
        with os.scandir(checkpoint / kind) as entries:
            return [int(file.name) for file in entries if file.name.isascii() and file.name.isdecimal()]
    except FileNotFoundError:
        return []


def moments_of(checkpoint: Path, epoch: int) -> tuple[float, float]:
    """When an epoch was planned, and when it was committed, in seconds since 1970. Both entries are removed after a hundred epochs."""
    planned, committed = (entry(checkpoint, kind, epoch - 1).stat().st_mtime for kind in (OFFSETS, COMMITS))
    return planned, committed


def checksum_of(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def plan_checksum(plan: str) -> str:
    return f"{zlib.crc32(plan.encode()):08x}"


def give_id(checkpoint: Path) -> None:
    """Give the query an id; nothing of ours depends on which."""
    replace_text(checkpoint / QUERY, json.dumps({"id": str(uuid.uuid4())}))


class Journal:
    """Writes entries, and makes them survive a power cut, which Spark does not."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._known = False

    def sync(self, kind: str, epoch: int) -> None:
        """Make the entry of an epoch durable."""
        file = entry(self._checkpoint, kind, epoch - 1)
        _sync(file)
        sync_directory(file.parent)
        if not self._known:
            # The first epoch of a new job has created these.
            _sync(self._checkpoint / QUERY)
            sync_directory(self._checkpoint)
            sync_directory(self._checkpoint.parent)
            self._known = True

    def open(self) -> None:
        """Prepare a checkpoint for entries of this process, and remove what Spark would have removed."""
        for kind in (OFFSETS, COMMITS):
            (self._checkpoint / kind).mkdir(parents=True, exist_ok=True)
        if not (self._checkpoint / QUERY).exists():
            give_id(self._checkpoint)
        last = max(batches(self._checkpoint, OFFSETS), default=0)
        for kind in (OFFSETS, COMMITS):
            for batch in batches(self._checkpoint, kind):
                if batch <= last - RETAINED:
                    remove_entry(entry(self._checkpoint, kind, batch))

    def plan(self, epoch: int, plan: str) -> None:
        """Store the plan of an epoch durably, before anything of the epoch is written."""
        if (file := entry(self._checkpoint, OFFSETS, epoch - 1)).exists():
            raise JobError(
                f"epoch {epoch} is in the journal already: {file}",
                why="another driver has run the job meanwhile, although only one can have its lock",
                hint="stop one of the two; the next run continues from the journal",
            )
        conf = {CHECKSUM: plan_checksum(plan)}
        known = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": time.time_ns() // 1_000_000, "conf": conf})
        self._write(OFFSETS, epoch, f"v1\n{known}\n{plan}")
        self.sync(OFFSETS, epoch)

    def commit(self, epoch: int) -> None:
        """Commit an epoch, and remove the entries of one that is too old to go back to."""
        self._write(COMMITS, epoch, _COMMITTED)
        for kind in (OFFSETS, COMMITS):
            remove_entry(entry(self._checkpoint, kind, epoch - 1 - RETAINED))

    def _write(self, kind: str, epoch: int, text: str) -> None:
        file = entry(self._checkpoint, kind, epoch - 1)
        # A query of Spark's that was cut off may have left one.
        checksum_of(file).unlink(missing_ok=True)
        # Complete or not there, however this process ends.
        fresh = file.with_name(f".{file.name}.new")
        fresh.write_text(text, encoding="utf-8")
        fresh.rename(file)


def remove_entry(file: Path) -> None:
    """Remove an entry and its checksum, if they exist."""
    for path in (checksum_of(file), file):
        path.unlink(missing_ok=True)


def _sync(file: Path) -> None:
    sync_file(file)
    if (sums := checksum_of(file)).exists():
        sync_file(sums)
