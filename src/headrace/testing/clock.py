"""A wall clock that several processes share and a test sets."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path


@dataclass(frozen=True)
class FileClock:
    """Shows the time in a file: every process that has the clock sees it move when one of them sets it."""

    file: Path

    def set(self, moment: int) -> None:
        """Set the time, in microseconds since 1970 UTC."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(str(moment), encoding="ascii")
        fresh.rename(self.file)

    def advance(self, by: timedelta) -> None:
        self.set(self.now() + by // timedelta(microseconds=1))

    def now(self) -> int:
        return int(self.file.read_text(encoding="ascii"))

    def sleep(self, seconds: float) -> None:
        """Wait in real time, to give another process time to work."""
        time.sleep(seconds)
