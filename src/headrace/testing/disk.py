"""A simulated machine in memory: a disk that may lose unsynced data (`inode.py`), and processes on it that die."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import TracebackType

import pyarrow as pa

from headrace.core.files.disk import Bytes
from headrace.testing.inode import Directory, Inode


class Crash(BaseException):
    """Raised in a process that is dead: it was killed, or the machine lost power."""


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
        """End a process at once: its locks are free, its writes stay, and its current write to shared memory is torn."""
        process.alive = False
        for inode in self.mapped:
            if running:
                inode.tear(self.random)
        for inode in self.root.inodes():
            if inode.holder is not None and inode.holder.process is process:
                inode.holder = None

    def cut_power(self, luck: float | None = None) -> None:
        """Lose unsynced data, or parts of it, and start again; earlier processes are dead and must be dropped.

        `luck` is the share that survives, from 0 to 1; each file has its own if it is not given.
        """
        self.root = self.root.restart(self.random, luck)
        self.mapped.clear()
        self.moved()
        self.boots += 1

    def directory(self, parts: tuple[str, ...]) -> Directory:
        """The directory at a path. Nearly every operation asks for it, so the answers are cached."""
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
        """Drop the cached directories; one was renamed or removed."""
        self._found.clear()

    def inode(self) -> Inode:
        self._numbers += 1
        return Inode(self._numbers)

    def map(self, inode: Inode, size: int) -> memoryview:
        if not inode.mapped:
            self.mapped.append(inode)
        return inode.map(size)

    def observe(self) -> None:
        """Record what the running process wrote to shared memory: it is complete when the process goes on to something else."""
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
            # Another process may have created it meanwhile.
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
    """An open file. Each one is told once of a failed sync, whichever process made it, as on Linux."""

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
        """There is nothing to release."""


class SimulatedLock:
    """A lock between the processes of a machine; a waiting process lets others run."""

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
        """There is nothing to release."""

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()
