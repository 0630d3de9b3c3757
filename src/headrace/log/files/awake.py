"""The partitions of a log with open files: a bounded number, however many topics a process uses."""

from __future__ import annotations

import resource
import threading

from headrace.log.files.partition import Partition

# An open partition has four descriptors: its two locks, the active segment, and its index.
_DESCRIPTORS = 4
_SHARE = 4


class Awake:
    """The partitions that were opened last. When another one opens, the oldest closes its files; it opens them again when it is used.

    Together they use a quarter of the descriptors that the process may have.
    """

    def __init__(self) -> None:
        self.limit = _usual()
        self._partitions: dict[Partition, None] = {}
        self._guard = threading.Lock()

    def opened(self, partition: Partition) -> None:
        """Called under the lock of a partition that has just opened its files; closes those of others only if their locks are free."""
        with self._guard:
            self._partitions.pop(partition, None)
            self._partitions[partition] = None
            surplus = list(self._partitions)[: max(0, len(self._partitions) - self.limit)]
            for resting in surplus:
                del self._partitions[resting]
        for resting in surplus:
            resting.rest()


def _usual() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, (1024 if soft == resource.RLIM_INFINITY else soft) // (_SHARE * _DESCRIPTORS))
