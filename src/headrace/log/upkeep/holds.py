"""Holds: the offsets from which a reader may read a topic again, so that compaction must leave these records as they are.

Each holder has one file. A hold expires with the file that it names as its witness: a removed job holds nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.core.files.disk import Disk
from headrace.log.files.partition import Partition

Offsets = Mapping[str, Mapping[int, int]]
"""Offsets by the id of a topic and the number of a partition. A partition that is not named is held from its beginning."""


@dataclass(frozen=True)
class Holds:
    """The holds of a log, in a directory that every process sees."""

    disk: Disk
    directory: Path

    def put(self, holder: str, offsets: Offsets, witness: Path) -> None:
        """Set the offsets of a holder's hold, for as long as the witness exists; durable when this returns."""
        self.disk.make_directory(self.directory)
        content = {"witness": os.path.relpath(witness, self.directory), "offsets": offsets}
        self.disk.replace(self.directory / holder, json.dumps(content).encode())

    def release(self, holder: str) -> None:
        """Remove a holder's hold."""
        if self.disk.exists(self.directory / holder):
            self.disk.remove(self.directory / holder)

    def __contains__(self, holder: str) -> bool:
        return any(name == holder for name, _ in self._live())

    def floor(self, partition: Partition) -> tuple[int, str] | None:
        """The lowest offset of a partition under a hold, and its holder; None if there is none."""
        held = [
            (int(offsets.get(str(partition.index), 0)), holder)
            for holder, content in self._live()
            if (offsets := content["offsets"].get(partition.topic.id)) is not None
        ]
        return min(held, default=None)

    def _live(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if not self.disk.exists(self.directory):
            return
        # A name with a dot is a file that another process is still writing.
        for holder in (name for name in self.disk.list(self.directory) if not name.startswith(".")):
            try:
                content = json.loads(self.disk.read(self.directory / holder))
            except FileNotFoundError:
                continue
            if self.disk.exists(self.directory / content["witness"]):
                yield holder, content
