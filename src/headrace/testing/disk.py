"""A machine that exists in memory: files whose unsynced writes a power cut drops, tears and reorders, and processes that die.

What a real ext4 or xfs may do to data that was not synced: each sector of 512 bytes has, after a power cut, any of the contents it
had since the last sync; the length of a file is any it had; an entry in a directory is there or not; a mapped page was written back
or not. What was synced stays. The choice comes from a seeded generator, so each run can be had again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import TracebackType

import pyarrow as pa

from headrace.log.disk import Bytes

SECTOR = 512
_LUCK = (0.0, 0.5, 0.5, 0.9, 1.0)


class Crash(BaseException):
    """The process that sees this is dead: it was killed, or the machine lost power."""


class Inode:
    """A file: what processes see of it, what the disk is sure to have, and what may have got there since."""

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
        """A sync that failed: some of what was to be written is on the disk, and all of it counts as clean. A journal is not lost."""
        sizes = self._sizes.copy()
        behind = {sector: versions for sector, versions in self._dirty.items() if sector * SECTOR >= self.size}
        self._settle(random, random.choice(_LUCK))
        self._clean()
        self._sizes, self._dirty = sizes, behind

    def observe(self) -> bool:
        """Note what was written through a map; whether anything was."""
        if not self.mapped or self.data[: self.mapped] == self.mapped_before:
            return False
        self.mapped_before = bytes(self.data[: self.mapped])
        self._touch(0, self.mapped)
        return True

    def tear(self, random: Random) -> None:
        """A process died while it wrote through a map: only the first part of that is there."""
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
        """The file as it is found after a power cut."""
        self.observe()
        self._settle(random, random.choice(_LUCK) if luck is None else luck)
        found = Inode(self.number, len(self.data))
        size = found.size = found._synced_size = self._synced_size
        for sector, content in self._synced.items():
            # What lies behind the end does not come back when the file grows again.
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
    """Names, as processes see them and as the disk is sure to have them."""

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
        """The directory as it is found after a power cut: a journal loses its end, other file systems any part."""
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


class Machine:
    """Memory, a disk, and the processes on it. `before` is called before each operation of a process, and may raise."""

    def __init__(self, random: Random, root: Directory | None = None) -> None:
        self.random = random
        self.root = root or Directory()
        self.boots = 1
        self.before: Callable[[SimulatedDisk, str], None] = lambda disk, kind: None
        self.blocked: Callable[[SimulatedDisk, Inode], None] = lambda disk, inode: None
        self.mapped: list[Inode] = []
        self._found: dict[tuple[str, ...], Directory] = {}
        self._numbers = max((inode.number for inode in self.root.inodes()), default=0)

    def process(self) -> SimulatedDisk:
        """A new process on this machine."""
        return SimulatedDisk(self)

    def kill(self, process: SimulatedDisk, *, running: bool = True) -> None:
        """End a process at once: its locks are free, what it wrote stays, and what it was writing to shared memory is torn."""
        process.alive = False
        for inode in self.mapped:
            if running:
                inode.tear(self.random)
        for inode in self.root.inodes():
            if inode.holder is not None and inode.holder.process is process:
                inode.holder = None

    def cut_power(self, luck: float | None = None) -> None:
        """Lose what was not synced, or parts of it, and start again; processes of before are dead and must be forgotten.

        `luck` is the share of it that survives, from 0 to 1; each file has its own if it is not given.
        """
        self.root = self.root.restart(self.random, luck)
        self.mapped.clear()
        self.moved()
        self.boots += 1

    def directory(self, parts: tuple[str, ...]) -> Directory:
        """The directory under a path. Nearly every operation asks, so the answers are kept."""
        known = self._found.get(parts)
        if known is not None:
            return known
        found: Inode | Directory | None = self.root
        for name in parts[1:]:
            found = found.entries.get(name) if isinstance(found, Directory) else None
        if not isinstance(found, Directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/".join(parts))
        self._found[parts] = found
        return found

    def moved(self) -> None:
        """Forget which directory is where; one was renamed or removed."""
        self._found.clear()

    def inode(self) -> Inode:
        self._numbers += 1
        return Inode(self._numbers)

    def map(self, inode: Inode, size: int) -> memoryview:
        if not inode.mapped:
            self.mapped.append(inode)
        return inode.map(size)

    def observe(self) -> None:
        """Note what the running process wrote to shared memory: it is complete when the process goes on to something else."""
        for inode in self.mapped:
            if inode.data[: inode.mapped] != inode.mapped_before:
                inode.observe()


class SimulatedDisk:
    """The disk of a machine as one of its processes uses it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.alive = True

    def open(self, path: Path, *, create: bool = False) -> SimulatedFile:
        directory, name = self._parent(path)
        node = directory.entries.get(name)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            self.step("create")
            # Another process may have made it meanwhile.
            if name not in directory.entries:
                directory.change({name: self.machine.inode()})
            node = directory.entries[name]
        assert isinstance(node, Inode)
        return SimulatedFile(self, node)

    def read(self, path: Path) -> bytes:
        file = self.open(path)
        return file.read(0, file.size())

    def replace(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f".{path.name}.new")
        file = self.open(temporary, create=True)
        try:
            file.truncate(0)
            file.write([data], 0)
            file.sync()
            self.rename(temporary, path)
        except OSError:
            self.remove(temporary)
            raise

    def rename(self, old: Path, new: Path) -> None:
        self.step("rename")
        directory, name = self._parent(old)
        assert old.parent == new.parent
        node = directory.entries[name]
        directory.change({name: None, new.name: node})
        if isinstance(node, Directory):
            self.machine.moved()
        self.sync_directory(new.parent)

    def remove(self, path: Path) -> None:
        self.step("remove")
        directory, name = self._parent(path)
        if name in directory.entries:
            directory.change({name: None})

    def remove_tree(self, path: Path) -> None:
        self.remove(path)
        self.machine.moved()

    def list(self, directory: Path) -> list[str]:
        return list(self.machine.directory(directory.parts).entries)

    def exists(self, path: Path) -> bool:
        try:
            directory, name = self._parent(path)
        except FileNotFoundError:
            return False
        return name in directory.entries

    def size(self, path: Path) -> int:
        return self.open(path).size()

    def extent(self, path: Path) -> tuple[int, int]:
        inode = self.open(path).inode
        return inode.number, inode.size

    def stamp(self, path: Path) -> tuple[int, int]:
        inode = self.open(path).inode
        return inode.number, inode.changes

    def make_directory(self, path: Path) -> None:
        if self.exists(path):
            return
        if path.parent != path.parent.parent:
            self.make_directory(path.parent)
        self.step("make_directory")
        parent, name = self._parent(path)
        parent.change({name: Directory()})
        self.sync_directory(path.parent)

    def sync_directory(self, path: Path) -> None:
        self.step("sync_directory")
        self.machine.directory(path.parts).sync()

    def shared(self, path: Path, size: int) -> memoryview:
        return self.machine.map(self.open(path, create=True).inode, size)

    def lock(self, path: Path) -> SimulatedLock:
        return SimulatedLock(self, self.open(path, create=True).inode)

    def boot(self) -> str:
        return f"boot {self.machine.boots}"

    def step(self, kind: str) -> None:
        """Pass a point where this process may be stopped for a while, or for good."""
        if not self.alive:
            raise Crash
        self.machine.before(self, kind)
        for inode in self.machine.mapped:
            if inode.data[: inode.mapped] != inode.mapped_before:
                inode.observe()

    def _parent(self, path: Path) -> tuple[Directory, str]:
        parts = path.parts
        return self.machine.directory(parts[:-1]), parts[-1]


class SimulatedFile:
    """An open file. Each one is told once of a sync that failed, whoever made it, as Linux does."""

    def __init__(self, process: SimulatedDisk, inode: Inode) -> None:
        self.inode = inode
        self._process = process
        self._errors = inode.errors

    def write(self, parts: Sequence[Bytes], position: int) -> None:
        data = b"".join(map(bytes, parts))
        alive = self._process.alive
        try:
            self._process.step("write")
        except (Crash, OSError):
            if alive and self._process.machine.random.random() < 0.7:
                self.inode.write(data[: self._process.machine.random.randint(0, len(data))], position)
            raise
        self.inode.write(data, position)

    def read(self, position: int, length: int) -> bytes:
        return bytes(self.inode.data[position : min(position + length, self.inode.size)])

    def map(self, room: int = 0) -> pa.Buffer:
        return pa.py_buffer(memoryview(self.inode.data)[: self.inode.size])

    def size(self) -> int:
        return self.inode.size

    def extent(self) -> tuple[int, int]:
        return self.inode.number, self.inode.size

    def sync(self) -> None:
        try:
            self._process.step("sync")
        except OSError:
            self.inode.errors += 1
            self._errors = self.inode.errors
            self.inode.lose(self._process.machine.random)
            raise
        self.inode.sync()
        if self._errors < self.inode.errors:
            self._errors = self.inode.errors
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def truncate(self, size: int) -> None:
        self._process.step("truncate")
        self.inode.truncate(size)

    def close(self) -> None:
        """Nothing to give back."""


class SimulatedLock:
    """A lock between the processes of a machine; whoever waits for it lets others run."""

    def __init__(self, process: SimulatedDisk, inode: Inode) -> None:
        self.process = process
        self._inode = inode

    def acquire(self, *, wait: bool = True) -> bool:
        self.process.step("lock")
        while self._inode.holder is not None:
            if not wait:
                return False
            self.process.machine.blocked(self.process, self._inode)
        self._inode.holder = self
        return True

    def release(self) -> None:
        if self.process.alive and self._inode.holder is self:
            self.process.step("unlock")
            self._inode.holder = None

    def rest(self) -> None:
        """Nothing to give back."""

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()
