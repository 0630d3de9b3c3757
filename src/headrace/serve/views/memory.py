"""Memory given back to the system: reading a large view leaves allocators with twice what its rows take, which they keep otherwise."""

from __future__ import annotations

import ctypes
import ctypes.util
import gc

import pyarrow as pa


def give_back() -> None:
    """Let the allocators of Python, Arrow and the C library return what they do not use."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(ctypes.util.find_library("c")), "malloc_trim", None)
    # Other C libraries than glibc have no such call.
    if trim is not None:
        trim(0)
