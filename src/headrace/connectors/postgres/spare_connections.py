"""Connections for calls that run side by side: each has its own, and leaves it to the next call.

A lookup calls in a thread of its own each time, so a connection cannot be that of its thread.
"""

from __future__ import annotations

import atexit
import os
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from headrace.connectors.postgres.client import Connection

Answer = TypeVar("Answer")


class SpareConnections:
    """Connections that no call uses at the moment, in this process only, by purpose. Closed when the process ends."""

    def __init__(self) -> None:
        self._idle: dict[tuple[int, object], deque[Connection]] = {}
        atexit.register(self.forget)

    def lend(self, purpose: object, make: Callable[[], Connection], work: Callable[[Connection], Answer]) -> Answer:
        """Do work on an idle connection or, if there is none, or that one is lost, on a new one."""
        # A deque needs no lock, which a fork could leave closed.
        idle = self._idle.setdefault((os.getpid(), purpose), deque())
        while True:
            connection, used = self._taken(idle, make)
            try:
                answer = work(connection)
            except BaseException:
                lost = connection.broken
                connection.close()
                if lost and used:
                    continue
                raise
            idle.append(connection)
            return answer

    def forget(self) -> None:
        """Close all idle connections of this process."""
        for (process, _), idle in list(self._idle.items()):
            while process == os.getpid() and idle:
                idle.pop().close()

    def _taken(self, idle: deque[Connection], make: Callable[[], Connection]) -> tuple[Connection, bool]:
        """A connection, and whether an earlier call used it."""
        try:
            return idle.pop(), True
        except IndexError:
            return make(), False
