"""The head of a partition, which all its processes see at once: its end, what is durable, what is visible.

The words are in shared memory, followed by a checksum. A reader copies them without a lock and verifies the checksum. A writer that died
half-way leaves it wrong, so that the next one knows that it must recover.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import NamedTuple

from headrace.log.bell import Watch, Word
from headrace.log.files.checksum import checksum

_RETRIES = 200


class PartitionState(NamedTuple):
    """One consistent state of a partition. Offsets are those of the next record; positions are in the active segment.

    `visible` is never below `durable`. All offsets that readers may have seen before they were durable are below `reserved`. `cuts` counts
    how often written appends may have been cut off. `syncing` is set while a sync is under way. If a process dies with it set, the kernel
    may count lost pages as clean, so what is not durable must be written again before a sync is trusted. `ragged` means that bytes of a
    failed write may still be on the disk after the end; `rolling`, if its process died, means that a new segment may already exist.
    """

    boot: int
    segment: int
    position: int
    entries: int
    written: int
    durable: int
    durable_position: int
    visible: int
    visible_position: int
    reserved: int
    start: int
    cuts: int
    layout: int
    syncing: int
    ragged: int
    rolling: int
    deleted: int

    def shown(self) -> PartitionState:
        """The state after an append that readers may see before it is durable."""
        return self._replace(visible=self.written, visible_position=self.position)

    def synced(self, then: PartitionState) -> PartitionState:
        """The state after a sync of what was written in the state `then`."""
        return self._replace(
            durable=then.written,
            durable_position=then.position,
            visible=max(self.visible, then.written),
            visible_position=max(self.visible_position, then.position),
            syncing=0,
        )

    def rolled(self, segment: int, first: int) -> PartitionState:
        """The state after a new segment became the active one; its first append will be at the position `first`."""
        return self._replace(
            segment=segment, position=first, entries=0, durable_position=first, visible_position=first,
            # An empty segment is created again under its old name: a process that has it open must notice.
            cuts=self.cuts + (self.entries == 0), layout=self.layout + 1, rolling=0,
        )  # fmt: skip


_WORDS = struct.Struct(f"<{len(PartitionState._fields)}q")
SIZE = _WORDS.size + 8
# The lower half of `visible`, which comes first in memory: it changes with every append that readers can see.
_VISIBLE = 8 * PartitionState._fields.index("visible")
# A head of zeros (a new file) must not pass for a valid one.
_SALT = b"head"


class Head:
    """The shared words of one partition. `store` is called under the partition's lock, `load` at any time."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory

    def load(self, *, locked: bool = False) -> PartitionState | None:
        """The present state, or None if it is not consistent. Under the partition's lock no process changes it, and one attempt is
        enough."""
        for _ in range(1 if locked else _RETRIES):
            copy = bytes(self._memory[:SIZE])
            if checksum(copy[: _WORDS.size] + _SALT) == int.from_bytes(copy[_WORDS.size :], "little"):
                return PartitionState(*_WORDS.unpack_from(copy))
        return None

    def store(self, state: PartitionState) -> None:
        words = _WORDS.pack(*state)
        news = self._memory[_VISIBLE : _VISIBLE + 8] != words[_VISIBLE : _VISIBLE + 8] or state.deleted
        self._memory[:SIZE] = words + checksum(words + _SALT).to_bytes(8, "little")
        if news:
            self._bell.ring()

    def watch(self) -> Watch:
        """The word that changes with every append that readers can see."""
        return self._bell.watch()

    @cached_property
    def _bell(self) -> Word:
        return Word(self._memory, _VISIBLE)
