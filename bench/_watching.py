"""A view watched while a job runs: its changelog is read as it grows, in a thread of its own."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import Any

from headrace.log.consumer import Consumer


class Watcher(ABC):
    """Takes in every row of some columns with the time at which it was first to be seen."""

    def __init__(self, consumer: Consumer, columns: list[str]) -> None:
        self._consumer, self._columns = consumer, columns
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @abstractmethod
    def take(self, row: dict[str, Any], now: float) -> None: ...

    @abstractmethod
    def saw(self, count: int) -> bool:
        """Whether all has been seen that is waited for."""

    def wait_for(self, count: int, patience: float = 60.0) -> None:
        deadline = time.time() + patience
        while not self.saw(count) and time.time() < deadline:
            time.sleep(0.05)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.is_set():
            found = self._consumer.poll(timeout="100ms", columns=self._columns)
            now = time.time()
            for row in found.to_pylist() if found is not None else []:
                self.take(row, now)
