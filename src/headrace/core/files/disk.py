"""The few file operations that the log is built on; a simulated disk can replace them.

Each operation passes a failpoint before and after it, so that a test can make every write, sync and rename of the log fail or kill.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeAlias

import pyarrow as pa

from headrace.core import failpoints
from headrace.core.files import mapping

Bytes: TypeAlias = bytes | memoryview | pa.Buffer
_VECTORS = 1024  # the most buffers that one pwritev accepts


class File(Protocol):
    """An open file, written at positions.

    `map` returns its content without a copy. With `room`, the map may extend past the end: those bytes become readable as the file grows.
    """

    def write(self, parts: Sequence[Bytes], position: int) -> None: ...

    def read(self, position: int, length: int) -> bytes: ...

    def map(self, room: int = 0) -> pa.Buffer: ...

    def size(self) -> int: ...

    def extent(self) -> tuple[int, int]: ...

    def sync(self) -> None: ...

    def truncate(self, size: int) -> None: ...

    def close(self) -> None: ...


class Disk(Protocol):
    """Files, directories, shared memory and locks."""

    def open(self, path: Path, *, create: bool = False) -> File: ...

    def read(self, path: Path) -> bytes: ...

    def replace(self, path: Path, data: bytes) -> None: ...

    def rename(self, old: Path, new: Path) -> None: ...

    def remove(self, path: Path) -> None: ...

    def remove_tree(self, path: Path) -> None: ...

    def list(self, directory: Path) -> list[str]: ...

    def exists(self, path: Path) -> bool: ...

    def size(self, path: Path) -> int: ...

    def extent(self, path: Path) -> tuple[int, int]: ...

    def stamp(self, path: Path) -> tuple[int, int]: ...

    def make_directory(self, path: Path) -> None: ...

    def sync_directory(self, path: Path) -> None: ...

    def shared(self, path: Path, size: int) -> memoryview: ...

    def lock(self, path: Path) -> Lock: ...

    def boot(self) -> str: ...


class Lock(AbstractContextManager[None], Protocol):
    """Excludes other threads and other processes; the system releases it when its process dies."""

    def acquire(self, *, wait: bool = True) -> bool: ...

    def release(self) -> None: ...

    def rest(self) -> None: ...


class PosixFile:
    """A file descriptor; all positions are explicit, so threads may share it."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        self._descriptor = -1
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)

    def write(self, parts: Sequence[Bytes], position: int) -> None:
        _point("disk.write.before")
        left = sum(map(len, parts))
        while left:
            written = os.pwritev(self._descriptor, parts[:_VECTORS], position)
            position, left = position + written, left - written
            if left:
                parts = _behind(parts, written)
        _point("disk.write.after")

    def read(self, position: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, position)

    def map(self, room: int = 0) -> pa.Buffer:
        size = self.size()
        return mapping.readable(self._descriptor, max(size, room)) if size else pa.py_buffer(b"")

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def extent(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_ino, status.st_size

    def sync(self) -> None:
        _point("disk.sync.before")
        _sync(self._descriptor)
        _point("disk.sync.after")

    def truncate(self, size: int) -> None:
        _point("disk.truncate.before")
        os.ftruncate(self._descriptor, size)
        _point("disk.truncate.after")

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


class PosixLock:
    """`flock` between processes and a thread lock inside one; a forked child opens its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._descriptor = -1
        self._open()
        _locks.add(self)

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def acquire(self, *, wait: bool = True) -> bool:
        if not self._threads.acquire(blocking=wait):
            return False
        try:
            if self._descriptor < 0:
                self._open()
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            self._threads.release()
            return False
        except BaseException:
            self._threads.release()
            raise
        return True

    def release(self) -> None:
        if self._threads.locked():
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self._threads.release()

    def rest(self) -> None:
        """Close the descriptor until the lock is next taken; does nothing while a thread holds the lock."""
        if self._threads.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._threads.release()

    def renew(self) -> None:
        """Drop what a forked child inherited from its parent.

        `flock` belongs to the open file, which a fork shares. Parent and child would hold the lock together, and if the parent died with
        it, the lock would stay taken for as long as the child lives.
        """
        self._threads = threading.Lock()
        self._close()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self._close()


def locked(path: Path) -> bool:
    """Whether a process holds the `PosixLock` of this file. The check takes a shared lock for a moment, which another attempt to lock may
    meet."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


_locks: weakref.WeakSet[PosixLock] = weakref.WeakSet()


def _renew_locks() -> None:
    for lock in list(_locks):
        lock.renew()


os.register_at_fork(after_in_child=_renew_locks)


class PosixDisk:
    """The machine's own file system."""

    def open(self, path: Path, *, create: bool = False) -> PosixFile:
        return PosixFile(path, create=create)

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def replace(self, path: Path, data: bytes) -> None:
        """Put a whole file in place, durably: readers see the old content or the new, never a part."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        file = self.open(temporary, create=True)
        try:
            file.truncate(0)
            file.write([data], 0)
            file.sync()
            self.rename(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            file.close()

    def rename(self, old: Path, new: Path) -> None:
        _point("disk.rename.before")
        old.rename(new)
        _point("disk.rename.after")
        self.sync_directory(new.parent)

    def remove(self, path: Path) -> None:
        _point("disk.remove.before")
        path.unlink(missing_ok=True)
        _point("disk.remove.after")

    def remove_tree(self, path: Path) -> None:
        shutil.rmtree(path)

    def list(self, directory: Path) -> list[str]:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries]

    def exists(self, path: Path) -> bool:
        return path.exists()

    def size(self, path: Path) -> int:
        return path.stat().st_size

    def extent(self, path: Path) -> tuple[int, int]:
        """The identity of the file, a number that no other file has while this one is open or mapped, and its size."""
        status = os.stat(path)  # noqa: PTH116 - asked before every look at a segment, and the method costs half as much again
        return status.st_ino, status.st_size

    def stamp(self, path: Path) -> tuple[int, int]:
        """A value that changes whenever the file is replaced."""
        status = os.stat(path)  # noqa: PTH116 - as above, of a topic
        return status.st_ino, status.st_mtime_ns

    def make_directory(self, path: Path) -> None:
        make_directory(path, self.sync_directory)

    def sync_directory(self, path: Path) -> None:
        _point("disk.sync_directory.before")
        sync_directory(path)
        _point("disk.sync_directory.after")

    def shared(self, path: Path, size: int) -> memoryview:
        """Bytes that every process mapping this file sees at once. After a power cut their content is only a hint."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.fstat(descriptor).st_size < size:
                # Allocated now: writing to a mapped hole on a full disk would be a SIGBUS, not an error.
                _allocate(descriptor, size)
            return mapping.writable(descriptor, size)
        finally:
            os.close(descriptor)

    def lock(self, path: Path) -> PosixLock:
        return PosixLock(path)

    def boot(self) -> str:
        """The identity of this boot of the machine: what another boot had only in memory is gone."""
        return _boot()


def make_directory(path: Path, sync: Callable[[Path], None] | None = None) -> None:
    """Make a directory and its missing parents; each is durable, with its entry in its own parent, when this returns."""
    if path.is_dir():
        return
    make_directory(path.parent, sync)
    path.mkdir(exist_ok=True)
    (sync or sync_directory)(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable: a power cut no longer undoes a rename in it."""
    sync_file(path)


def sync_file(path: Path) -> None:
    """Make the present content of a file durable, whichever process wrote it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@cache
def _boot() -> str:
    if sys.platform == "darwin":
        return subprocess.run(["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=True).stdout.strip()
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _behind(parts: Sequence[Bytes], length: int) -> Sequence[Bytes]:
    """The parts without their first bytes."""
    rest = [memoryview(part) for part in parts]
    while length >= len(rest[0]):
        length -= len(rest.pop(0))
    rest[0] = rest[0][length:]
    return rest


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":
        # On macOS, fsync leaves data in the drive's own cache.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(descriptor)


def _allocate(descriptor: int, size: int) -> None:
    if sys.platform == "darwin":
        os.ftruncate(descriptor, size)
    else:
        os.posix_fallocate(descriptor, 0, size)


def _point(name: str) -> None:
    if failpoints.active:
        failpoints.hit(name)
