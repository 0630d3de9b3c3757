"""Files mapped into memory without a descriptor: the map of the standard library keeps one open as long as it lives."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref

import pyarrow as pa

_system = ctypes.CDLL(None, use_errno=True)
_system.mmap.restype = ctypes.c_void_p
_system.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_system.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_FAILED = ctypes.c_void_p(-1).value


def readable(descriptor: int, size: int) -> pa.Buffer:
    """The first `size` bytes of a file; bytes past its end can be read once it has grown."""
    region = _Region(descriptor, size, mmap.PROT_READ)
    return pa.foreign_buffer(region.address, size, base=region)


def writable(descriptor: int, size: int) -> memoryview:
    """The first `size` bytes of a file, shared with every process that maps it."""
    region = _Region(descriptor, size, mmap.PROT_READ | mmap.PROT_WRITE)
    cells = (ctypes.c_char * size).from_address(region.address)
    # The cells live as long as a view of them does, and the region as long as they do.
    weakref.finalize(cells, region.forget).atexit = False
    return memoryview(cells).cast("B")


class _Region:
    """Mapped memory, unmapped when the last reference to it goes."""

    def __init__(self, descriptor: int, size: int, protection: int) -> None:
        self.size = 0
        address = _system.mmap(None, size, protection, mmap.MAP_SHARED, descriptor, 0)
        if address == _FAILED:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        self.address: int = address
        self.size = size

    def forget(self) -> None:
        """Does nothing: the method only keeps the region alive until it is called."""

    def __del__(self, unmap: ctypes._NamedFuncPointer = _system.munmap) -> None:
        if self.size:
            unmap(self.address, self.size)
