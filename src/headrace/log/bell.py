"""Waiting for a change of words in shared memory, made by this process or another, without polling."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

# futex(2) has a number for each processor, futex_waitv(2) the same for all; the latter came with Linux 5.16.
_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}.get(platform.machine()) if sys.platform == "linux" and sys.maxsize > 2**32 else None
_FUTEX_WAITV = 449
_WAKE, _EVERYBODY = 1, 2**31 - 1
_SHARED_32_BITS = 2
_MOST_WORDS = 128
_WAITER = struct.Struct("@QQII")
_MOMENT = struct.Struct("@qq")
# Without futexes, the first and the longest interval between two looks at the words.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.000_05, 0.002

_system = ctypes.CDLL(None, use_errno=True)
# A wake never blocks, so it keeps the interpreter's lock: releasing and taking it again would cost more than the call.
_at_once = ctypes.PyDLL(None)
if _FUTEX is not None:
    _system.syscall.argtypes = (ctypes.c_long, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_char_p, ctypes.c_int)
    _at_once.syscall.argtypes = (ctypes.c_long, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)


class Word:
    """Four bytes of shared memory. The process that changes them rings, and all waiting ones look again."""

    def __init__(self, memory: memoryview, position: int) -> None:
        self._cell = ctypes.c_uint32.from_buffer(memory, position)
        self.address = ctypes.addressof(self._cell)

    def ring(self) -> None:
        """Wake every process that waits for this word. Takes about a microsecond, also if none waits."""
        if _FUTEX is not None:
            _at_once.syscall(_FUTEX, self.address, _WAKE, _EVERYBODY)

    def watch(self) -> Watch:
        """The word as it is now. Take it before reading what it stands for: then no change between the read and the wait is missed."""
        return Watch(self, self._cell.value)


class Watch(NamedTuple):
    """A word, and its content at the last look."""

    word: Word
    seen: int

    @property
    def changed(self) -> bool:
        return self.word.watch().seen != self.seen


def wait(watches: Sequence[Watch], seconds: float) -> None:
    """Return when one of the words has changed, when its bell rings, or after `seconds`; spurious early returns are possible."""
    if _FUTEX is None or not 0 < len(watches) <= _MOST_WORDS:
        return poll(watches, seconds)
    waiters = b"".join([_WAITER.pack(watch.seen, watch.word.address, _SHARED_32_BITS, 0) for watch in watches])
    until = _MOMENT.pack(*divmod(time.monotonic_ns() + int(seconds * 1e9), 1_000_000_000))
    if _system.syscall(_FUTEX_WAITV, waiters, len(watches), 0, until, time.CLOCK_MONOTONIC) < 0 and _refused(ctypes.get_errno()):
        poll(watches, seconds)
    return None


def poll(watches: Sequence[Watch], seconds: float) -> None:
    """The same on any system, by polling."""
    deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while (rest := deadline - time.monotonic()) > 0 and not any(watch.changed for watch in watches):
        time.sleep(min(pause, rest))
        pause = min(2 * pause, _LONGEST_PAUSE)


def _refused(error: int) -> bool:
    """Whether the system lacks the call or a sandbox forbids it; other errors end a wait."""
    return error not in (errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT)
