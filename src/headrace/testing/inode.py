"""Files and directories in memory, and the effect of a power cut on unsynced data: it is dropped, torn and reordered.

The model is what a real ext4 or xfs may do to unsynced data. After a power cut, each sector of 512 bytes has any of the contents it had
since the last sync; the length of a file is any it had; an entry in a directory exists or not; a mapped page was written back or not.
Synced data stays. The choice comes from a seeded generator, so that each run can be repeated.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.testing.disk import SimulatedLock

SECTOR = 512
_LUCK = (0.0, 0.5, 0.5, 0.9, 1.0)


class Inode:
    """A file: what processes see of it, what is certain to be on the disk, and what may have got there since."""

    def __init__(self, number: int, capacity: int = 4096) -> None:
        self.number = number
        # Maps share this memory, as they share the pages of a real file, so it does not move while the file is small.
        self.data = bytearray(capacity)
        self.size = 0
        self.changes = 0
        self.holder: SimulatedLock | None = None
        self.errors = 0
        self.mapped = 0
        self.mapped_before = b""
        self._synced: dict[int, bytes] = {}
        self._synced_size = 0
        self._dirty: dict[int, list[bytes]] = {}
        self._sizes: list[int] = []

    def write(self, data: bytes, position: int) -> None:
        end = position + len(data)
        if end > len(self.data):
            self.data = bytearray(self.data.ljust(4 * end, b"\0"))
        self.data[position:end] = data
        self._resized(max(self.size, end))
        self._touch(position, end)

    def truncate(self, size: int) -> None:
        before = self.size
        if size < before:
            self.data[size:before] = bytes(before - size)
            self._touch(size, before)
        self._resized(size)

    def sync(self) -> None:
        self._synced.update({sector: versions[-1] for sector, versions in self._dirty.items()})
        self._synced_size = self.size
        self._clean()

    def lose(self, random: Random) -> None:
        """A failed sync: some of the data is on the disk, and all of it counts as clean. A journal is not lost."""
        sizes = self._sizes.copy()
        behind = {sector: versions for sector, versions in self._dirty.items() if sector * SECTOR >= self.size}
        self._settle(random, random.choice(_LUCK))
        self._clean()
        self._sizes, self._dirty = sizes, behind

    def observe(self) -> bool:
        """Record what was written through a map; returns whether anything was."""
        if not self.mapped or self.data[: self.mapped] == self.mapped_before:
            return False
        self.mapped_before = bytes(self.data[: self.mapped])
        self._touch(0, self.mapped)
        return True

    def tear(self, random: Random) -> None:
        """A process died while it wrote through a map: only the first part of the write remains."""
        before = self.mapped_before
        if self.observe() and before and random.random() < 0.5:
            whole = random.randrange(0, self.mapped, 8)
            self.data[whole : self.mapped] = before[whole:]
            self.observe()

    def map(self, size: int) -> memoryview:
        self.mapped = size
        self._resized(max(self.size, size))
        self.observe()
        return memoryview(self.data)[:size]

    def restart(self, random: Random, luck: float | None) -> Inode:
        """The file after a power cut."""
        self.observe()
        self._settle(random, random.choice(_LUCK) if luck is None else luck)
        found = Inode(self.number, len(self.data))
        size = found.size = found._synced_size = self._synced_size
        for sector, content in self._synced.items():
            # Bytes after the end do not come back when the file grows again.
            kept = content[: max(0, size - sector * SECTOR)]
            if kept:
                found.data[sector * SECTOR : sector * SECTOR + len(kept)] = kept
                found._synced[sector] = kept.ljust(SECTOR, b"\0")
        return found

    def copy(self) -> Inode:
        """The same file of another machine; everything must be synced."""
        assert not self._dirty
        found = Inode(self.number, len(self.data))
        found.data[:] = self.data
        found.size = found._synced_size = self.size
        found._synced = dict(self._synced)
        return found

    def _touch(self, begin: int, end: int) -> None:
        self.changes += 1
        for sector in range(begin // SECTOR, -(-end // SECTOR)):
            content = bytes(self.data[sector * SECTOR : (sector + 1) * SECTOR])
            self._dirty.setdefault(sector, []).append(content)

    def _resized(self, size: int) -> None:
        if size != self.size:
            self.size = size
            self._sizes.append(size)

    def _settle(self, random: Random, luck: float) -> None:
        for sector, versions in self._dirty.items():
            if random.random() < luck:
                self._synced[sector] = versions[-1] if random.random() < 0.7 else random.choice(versions)
        if self._sizes and random.random() < luck:
            self._synced_size = self._sizes[-1] if random.random() < 0.8 else random.choice(self._sizes)

    def _clean(self) -> None:
        self._dirty.clear()
        self._sizes.clear()


class Directory:
    """Names, as processes see them and as they are certain to be on the disk."""

    def __init__(self, entries: dict[str, Inode | Directory] | None = None) -> None:
        self.entries = entries or {}
        self._synced = dict(self.entries)
        self._pending: list[dict[str, Inode | Directory | None]] = []

    def change(self, changes: dict[str, Inode | Directory | None]) -> None:
        """Set or remove some names; all of them or none survive."""
        _apply(self.entries, changes)
        self._pending.append(changes)

    def sync(self) -> None:
        self._synced = dict(self.entries)
        self._pending.clear()

    def restart(self, random: Random, luck: float | None) -> Directory:
        """The directory after a power cut: a journal loses its end, other file systems lose any part."""
        kept = random.randint(0, len(self._pending)) if luck is None else round(luck * len(self._pending))
        scattered = luck is None and random.random() < 0.3
        for number, changes in enumerate(self._pending):
            if (random.random() < 0.5) if scattered else (number < kept):
                _apply(self._synced, changes)
        return Directory({name: node.restart(random, luck) for name, node in self._synced.items()})

    def sync_all(self) -> None:
        """Make everything below durable."""
        self.sync()
        for node in self.entries.values():
            node.sync_all() if isinstance(node, Directory) else node.sync()

    def copy(self) -> Directory:
        """The same directory of another machine; everything must be synced."""
        return Directory({name: node.copy() for name, node in self.entries.items()})

    def inodes(self) -> list[Inode]:
        """Every file below."""
        found: list[Inode] = []
        for node in self.entries.values():
            found += node.inodes() if isinstance(node, Directory) else [node]
        return found


def _apply(entries: dict[str, Inode | Directory], changes: dict[str, Inode | Directory | None]) -> None:
    for name, node in changes.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node
