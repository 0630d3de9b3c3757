"""What every process using a partition sees at once: where it ends, what is durable, what is visible.

The words live in shared memory with a checksum behind them. A reader copies them without a lock and looks at the checksum;
a writer that died half-way leaves it wrong, which is how the next one knows that it must recover.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import NamedTuple

from headrace.log.bell import Watch, Word
from headrace.log.checksum import checksum

_RETRIES = 200


class State(NamedTuple):
    """One consistent picture of a partition. Offsets are those of the next record; positions are in the active segment.

    `visible` is never below `durable`. Below `reserved` lie all offsets that readers may have seen before they were durable.
    `cuts` counts how often written appends may have been taken back. `syncing` is set while a sync is under way: left behind, it
    says that the kernel may take lost pages for clean, so what is not durable must be written again before a sync is believed.
    `ragged` says that bytes of a failed write may still be on the disk behind the end, and `rolling`, left behind, that a new segment
    may be there already.
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

    def shown(self) -> State:
        """After an append that readers may see before it is durable."""
        return self._replace(visible=self.written, visible_position=self.position)

    def synced(self, then: State) -> State:
        """After a sync of what was written in the state `then`."""
        return self._replace(
            durable=then.written,
            durable_position=then.position,
            visible=max(self.visible, then.written),
            visible_position=max(self.visible_position, then.position),
            syncing=0,
        )

    def rolled(self, segment: int, first: int) -> State:
        """After a new segment took the place of the active one; its first append will be at the position `first`."""
        return self._replace(
            segment=segment, position=first, entries=0, durable_position=first, visible_position=first,
            # An empty segment is made anew under its old name: who has it open must see that.
            cuts=self.cuts + (self.entries == 0), layout=self.layout + 1, rolling=0,
        )  # fmt: skip


_WORDS = struct.Struct(f"<{len(State._fields)}q")
SIZE = _WORDS.size + 8
# The lower half of `visible`, which comes first in memory: it changes with every append that readers can see.
_VISIBLE = 8 * State._fields.index("visible")
# A head of zeros (a new file) must not pass for a valid one.
_SALT = b"head"


class Head:
    """The shared words of one partition. `store` is called under the partition's lock, `load` by anyone."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory

    def load(self, *, locked: bool = False) -> State | None:
        """The present state, or None if no consistent one is there. Under the partition's lock nobody changes it, and one look tells."""
        for _ in range(1 if locked else _RETRIES):
            copy = bytes(self._memory[:SIZE])
            if checksum(copy[: _WORDS.size] + _SALT) == int.from_bytes(copy[_WORDS.size :], "little"):
                return State(*_WORDS.unpack_from(copy))
        return None

    def store(self, state: State) -> None:
        words = _WORDS.pack(*state)
        news = self._memory[_VISIBLE : _VISIBLE + 8] != words[_VISIBLE : _VISIBLE + 8] or state.deleted
        self._memory[:SIZE] = words + checksum(words + _SALT).to_bytes(8, "little")
        if news:
            self._bell.ring()

    def watch(self) -> Watch:
        """What changes with every append that readers can see."""
        return self._bell.watch()

    @cached_property
    def _bell(self) -> Word:
        return Word(self._memory, _VISIBLE)
