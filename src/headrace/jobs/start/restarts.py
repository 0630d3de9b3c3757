"""Restarts of a query that failed: which errors may be temporary, how often in a row, and after which pause."""

from __future__ import annotations

import re

# A process of Spark's vanished, or its connection did: killed by the system, out of memory, a lost machine.
_VANISHED = re.compile(
    r"Python worker exited unexpectedly|Python worker .*(crashed|failed to connect)|WRITER_FAILED_WITH_TASK|ExecutorLostFailure"
    r"|java\.io\.EOFException|Connection reset|Broken pipe|java\.lang\.OutOfMemoryError|SparkContext was shut down"
)
_RAISED = re.compile(r"^(?P<kind>[\w.]+(?:Error|Exception)): (?P<text>.*)$", re.MULTILINE)
_PASSING = frozenset({"MemoryError", "OSError", "ConnectionError", "ConnectionResetError", "BrokenPipeError", "TimeoutError", "EOFError"})
# Errors that no second attempt changes before there is free space.
_FULL = "No space left on device"
_FIRST, _LONGEST = 1.0, 60.0


def may_pass(text: str) -> bool:
    """Whether an epoch that failed with this error of Spark may succeed if it is repeated: no code, ours or the app's, refused it."""
    if _FULL in text:
        return False
    raised = _RAISED.findall(text)
    python = [kind.rpartition(".")[2] for kind, _ in raised if not kind.startswith(("org.apache.", "java.", "pyspark.", "py4j."))]
    if python:
        return python[-1] in _PASSING
    return _VANISHED.search(text) is not None


class Restarts:
    """Counts the restarts of a run. A finished epoch between two failures resets the count."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._epoch = -1
        self._row = 0
        self.count = 0

    def pause(self, epoch: int) -> float | None:
        """Seconds to wait before the restart after a failure that the job met after `epoch`; None if there were enough."""
        self._row = self._row + 1 if epoch == self._epoch else 1
        self._epoch = epoch
        if self._row > self._most:
            return None
        self.count += 1
        return min(_LONGEST, _FIRST * 2.0 ** (self._row - 1))
