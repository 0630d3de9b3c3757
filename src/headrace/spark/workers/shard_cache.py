"""The cache of a Python worker of Spark for the next epoch: workers live over many epochs, and over many jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from headrace.checkpoint.shard_state import StoredShard
    from headrace.operators.contract import Stateful

# A worker is not told when a job has ended. One that is only silent for this long reads its state again when it continues.
PATIENCE = 300.0
_Kept = TypeVar("_Kept")


@dataclass
class CachedShard:
    """A shard of a level: the decoded state of its operators, and its stored state; both as of the same epoch of a run."""

    run_id: str
    states: dict[str, Stateful]
    stored: StoredShard


class ShardCache(Generic[_Kept]):
    """The cached shards, by jobs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._jobs: dict[str, dict[tuple[int, int], _Kept]] = {}
        self._used_at: dict[str, float] = {}

    def take(self, job: str, level: int, shard: int) -> _Kept | None:
        """Remove and return a cached shard: if the task fails, its changes must not be seen."""
        return self._jobs.get(job, {}).pop((level, shard), None)

    def keep(self, job: str, level: int, shard: int, kept: _Kept) -> None:
        """Cache a shard; other jobs that have cached nothing for long count as ended."""
        now = self._clock()
        for other in [other for other, used_at in self._used_at.items() if other != job and now - used_at >= PATIENCE]:
            del self._jobs[other], self._used_at[other]
        self._jobs.setdefault(job, {})[level, shard] = kept
        self._used_at[job] = now

    def drop(self, job: str) -> bool:
        """Evict all shards of a job; returns whether there were any."""
        self._used_at.pop(job, None)
        return bool(self._jobs.pop(job, None))

    def __len__(self) -> int:
        """The number of jobs with cached shards."""
        return len(self._jobs)


cached_shards: ShardCache[CachedShard] = ShardCache()
