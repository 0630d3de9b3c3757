"""Repeated attempts while another system is away."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

Answer = TypeVar("Answer")

_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


def patiently(patience: timedelta, attempt: Callable[[], Answer], away: tuple[type[Exception], ...]) -> Answer:
    """The result of an attempt; one that fails with `away` is repeated after increasing pauses, while patience lasts."""
    deadline, pause = time.monotonic() + patience.total_seconds(), _PAUSE
    while True:
        try:
            return attempt()
        except away:
            if time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
