"""Signals that stop a run: the first lets the current epoch finish, the second ends the process at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPING = b"stopping: the current epoch finishes first; a second signal stops at once\n"
_AT_ONCE = b"stopped at once: the epoch at work was cut off, and the next run repeats it\n"
# Erases the line of progress, and shows the cursor that it hid.
_CLEAR = b"\r\x1b[K\x1b[?25h"


class StopSignals:
    """SIGINT and SIGTERM of this process, from `hear` on until `ignore`.

    A handler may interrupt any line of the main thread, also one that prints: it writes to the descriptor and raises nothing.
    """

    def __init__(self) -> None:
        self._stops: list[Callable[[], None]] = []
        self._before: dict[signal.Signals, Any] = {}
        self._over = False
        self.asked = False

    def hear(self) -> None:
        """Handle the signals from now on. Only the main thread may call it."""
        self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}

    def ignore(self) -> None:
        """Restore the previous handlers of the signals."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def calling(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` at the first signal, or now if it has already come."""
        self._stops.append(stop)
        try:
            if self.asked:
                stop()
            yield
        finally:
            self._stops.remove(stop)
            self._over = not self._stops

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._over:
            # The run has ended, and only its report is left to print.
            return
        if self.asked:
            _tell(_AT_ONCE)
            os._exit(128 + number)
        self.asked = True
        _tell(_STOPPING)
        for stop in list(self._stops):
            stop()


_heard: list[StopSignals] = []


@contextmanager
def signals_heard() -> Iterator[None]:
    """Handle the signals before a run begins: an early one stops the run as soon as it begins.

    Only the main thread gets signals; in another one nothing changes.
    """
    if _heard or threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = StopSignals()
    signals.hear()
    _heard.append(signals)
    try:
        yield
    finally:
        _heard.remove(signals)
        signals.ignore()


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let signals stop what runs in the block."""
    with signals_heard():
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        with _heard[-1].calling(stop):
            yield


def _tell(sentence: bytes) -> None:
    descriptor = sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
    os.write(descriptor, (_CLEAR if os.isatty(descriptor) else b"") + sentence)
