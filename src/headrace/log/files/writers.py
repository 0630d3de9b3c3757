"""The last append of each writer of a partition, so that a repeated append is stored once and an old writer is refused."""

from __future__ import annotations

import hashlib
import secrets
import struct
from dataclasses import dataclass, replace

import numpy as np

from headrace.log.errors import CorruptLog, Fenced
from headrace.log.files.checksum import checksum

NOBODY = 0
# Ids with the top bit may be forgotten after a long silence: those drawn at random, and those of passing writers.
_DRAWN = 1 << 63
_FORGET_AFTER = 7 * 86_400_000_000
_ENTRY = struct.Struct("<Qqqqqq")


@dataclass(frozen=True, slots=True)
class Author:
    """The author of an append: a writer, its generation (a newer one fences it), its sequence in this partition, its transaction (0:
    none)."""

    writer: int = NOBODY
    generation: int = 0
    sequence: int = 0
    transaction: int = 0


@dataclass(frozen=True, slots=True)
class Last:
    """The last append of a writer: its generation and sequence, and its offsets."""

    generation: int
    sequence: int
    base: int
    next: int
    appended_at: int


def named(name: str) -> int:
    """The id of a writer that keeps its name over restarts."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") & ~_DRAWN or 1


def passing(name: str) -> int:
    """The id of a writer that is known by its name and forgotten after a long silence."""
    return named(name) | _DRAWN


def drawn() -> int:
    """The id of a writer that exists as long as its process."""
    return secrets.randbits(63) | _DRAWN


class Writers:
    """The last append of every writer of one partition."""

    def __init__(self, last: dict[int, Last] | None = None) -> None:
        self._last = last or {}

    def get(self, writer: int) -> Last | None:
        return self._last.get(writer)

    def made(self, author: Author) -> Last | None:
        """The stored append that an author is about to repeat; None if it is a new one. A writer that was replaced is refused."""
        last = self._last.get(author.writer) if author.writer != NOBODY else None
        if last is None:
            return None
        if last.generation > author.generation:
            raise Fenced(
                f"writer {author.writer:x} of generation {author.generation} was replaced by generation {last.generation}",
                why="its appends would mix with those of its successor",
                hint="stop this writer; the new one continues",
            )
        return last if author.sequence <= last.sequence else None

    def learn(self, entries: np.ndarray) -> None:
        """Record index entries in their order; the frames of one append count as one."""
        for entry in entries:
            known = (entry["generation"], entry["sequence"], entry["base"], entry["next"], entry["appended_at"])
            self.record(int(entry["writer"]), Last(*map(int, known)))

    def record(self, writer: int, last: Last) -> None:
        """Record an append, or a further frame of the last one."""
        if writer == NOBODY:
            return
        before = self._last.get(writer)
        if before and before.sequence == last.sequence and before.generation == last.generation:
            last = replace(last, base=before.base)
        self._last[writer] = last

    def pack(self, now: int) -> bytes:
        """The state that must outlive the segments it came from."""
        kept = [(writer, last) for writer, last in self._last.items() if not writer & _DRAWN or last.appended_at > now - _FORGET_AFTER]
        body = b"".join(_ENTRY.pack(w, k.generation, k.sequence, k.base, k.next, k.appended_at) for w, k in kept)
        return checksum(body).to_bytes(4, "little") + body

    @classmethod
    def unpack(cls, data: bytes, path: str) -> Writers:
        body = data[4:]
        if len(data) < 4 or checksum(body) != int.from_bytes(data[:4], "little"):
            raise CorruptLog(
                f"{path} has been changed or damaged",
                why="it records which appends are already stored",
                hint="restore the file from a copy, or run log.repair(topic, partition)",
            )
        return cls({writer: Last(*rest) for writer, *rest in _ENTRY.iter_unpack(body)})
