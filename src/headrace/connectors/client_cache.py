"""Clients that a process keeps from epoch to epoch: workers live long, and connecting costs more than writing."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Client = TypeVar("Client")


class ClientCache(Generic[Client]):
    """One client for each purpose, in this process only: connections and threads do not survive a fork. Closed when the process ends.

    >>> kept = ClientCache[list[int]](close=list.clear)
    >>> kept.get("a", list) is kept.get("a", list)
    True
    """

    def __init__(self, close: Callable[[Client], object]) -> None:
        self._close = close
        self._clients: dict[tuple[int, Hashable], Client] = {}
        atexit.register(self.forget)

    def get(self, purpose: Hashable, make: Callable[[], Client]) -> Client:
        known = (os.getpid(), purpose)
        if known not in self._clients:
            self._clients[known] = make()
        return self._clients[known]

    def drop(self, purpose: Hashable) -> None:
        """Close a client that is not to be used again, if there is one."""
        client = self._clients.pop((os.getpid(), purpose), None)
        if client is not None:
            self._close(client)

    def forget(self) -> None:
        """Close all clients of this process."""
        for process, purpose in list(self._clients):
            if process == os.getpid():
                self.drop(purpose)
