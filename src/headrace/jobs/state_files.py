"""The files that the state of a job stands on as of an epoch, as Spark's store keeps them, and which of them are torn or missing.

A commit names, for each step with state and each of its partitions, the version of the state. A version is a snapshot (`.zip`, with files
`.sst` that several snapshots share), or changes (`.changelog`) since the version before it. Beside each lies what its size and checksum
are. Large blobs are in files of our own. Nobody syncs them.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import google_crc32c

from headrace.spark.blob_files import BLOBS, BlobFile, all_files

States = Mapping[str, Sequence[Sequence[str]]]
"""By steps and their partitions, what tells a version of the state from others of its number."""


@dataclass(frozen=True)
class Needed:
    """A file that a state stands on, and how large it is, if that is known from elsewhere."""

    path: Path
    size: int | None = None

    def whole(self, *, thorough: bool) -> bool:
        told = _told(self.path)
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return False
        if not size or size != (self.size or told.get("mainFileSize", size)):
            return False
        if not thorough or told.get("algorithm") != "CRC32C":
            return True
        # Java has no unsigned numbers.
        return bool(google_crc32c.value(self.path.read_bytes()) == told["value"] % (1 << 32))


@dataclass(frozen=True)
class StateFiles:
    """The state of one job: the checkpoint that it is in, and which versions each batch has committed."""

    checkpoint: Path
    states: Mapping[int, States]

    def damaged(self, batch: int, *, thorough: bool) -> Path | None:
        """A file that the state as of a batch needs and that is not what it should be, by its size or, thoroughly, by its content."""
        for step, partitions in self.states.get(batch, {}).items():
            for partition in range(len(partitions)):
                for file in self._needed(batch, step, partition):
                    if not file.whole(thorough=thorough):
                        return file.path
        # What an epoch has written, those after it stand on as well; that this one does not any more is not known.
        torn = self._torn_by_content if thorough else self._torn_by_size
        return next((file.path for file in torn if file.epoch <= batch + 1), None)

    @cached_property
    def _torn_by_size(self) -> list[BlobFile]:
        return [file for file in all_files(self.checkpoint / BLOBS) if not file.whole(thorough=False)]

    @cached_property
    def _torn_by_content(self) -> list[BlobFile]:
        return [file for file in all_files(self.checkpoint / BLOBS) if not file.whole(thorough=True)]

    def _needed(self, batch: int, step: str, partition: int) -> Iterator[Needed]:
        """The changes up to a batch, back to the last snapshot, or to the beginning."""
        place = self.checkpoint / "state" / step / str(partition)
        while batch in self.states:
            version = f"{batch + 1}_{self.states[batch][step][partition][0]}"
            snapshot = place / f"{version}.zip"
            if snapshot.exists():
                yield Needed(snapshot)
                yield from _shared(snapshot)
                return
            yield Needed(place / f"{version}.changelog")
            batch -= 1


def _told(file: Path) -> dict[str, Any]:
    """What Spark has written down of a file when it made it; nothing if that is not there."""
    try:
        told: dict[str, Any] = json.loads(file.with_name(f"{file.name}.crc").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return told


def _shared(snapshot: Path) -> Iterator[Needed]:
    """The files that a snapshot shares with others; one that is not whole names none."""
    try:
        with zipfile.ZipFile(snapshot) as archive:
            described = json.loads(archive.read("metadata").split(b"\n", 1)[1])
    except (OSError, KeyError, IndexError, ValueError, zipfile.BadZipFile):
        return
    for file in described.get("sstFiles", []):
        yield Needed(snapshot.parent / "SSTs" / file["dfsSstFileName"], file["sizeBytes"])
