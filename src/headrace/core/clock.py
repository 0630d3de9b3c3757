"""Wall-clock time as an argument, so that tests set it and nothing sleeps."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """The wall clock, in microseconds since 1970 UTC, and a way to wait."""

    def now(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock that moves only when told; sleeping moves it."""

    def __init__(self, start: int = 1_767_225_600_000_000) -> None:  # 2026-01-01T00:00:00Z
        self._now = start

    def now(self) -> int:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += round(seconds * 1_000_000)

    def advance(self, by: timedelta) -> None:
        self._now += by // timedelta(microseconds=1)


def to_microseconds(moment: datetime | int) -> int:
    """Microseconds since 1970 UTC; a datetime without a zone is read as UTC.

    >>> to_microseconds(datetime(1970, 1, 1, 0, 0, 1))
    1000000
    """
    if isinstance(moment, int):
        return moment
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)


def to_datetime(moment: int) -> datetime:
    """An aware UTC datetime from microseconds since 1970."""
    return EPOCH + timedelta(microseconds=moment)
