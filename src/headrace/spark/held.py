"""What a Python worker of Spark keeps in memory for the next epoch: workers live over many epochs, and over many jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from headrace.operators.contract import Stateful
    from headrace.spark.stored import Stored

# Nobody tells a worker that a job has ended. One that is only silent for so long reads its state again when it goes on.
PATIENCE = 300.0
_Kept = TypeVar("_Kept")


@dataclass
class Kept:
    """A shard of a level: the decoded state of its operators, and what is stored of it; both as of the same epoch of a run."""

    run: int
    states: dict[str, Stateful]
    stored: Stored


class Held(Generic[_Kept]):
    """What is kept of shards, by jobs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._jobs: dict[str, dict[tuple[int, int], _Kept]] = {}
        self._used_at: dict[str, float] = {}

    def take(self, job: str, level: int, shard: int) -> _Kept | None:
        """What is held of a shard. It is held no more: if the task fails, what it did to it must not be seen."""
        return self._jobs.get(job, {}).pop((level, shard), None)

    def keep(self, job: str, level: int, shard: int, kept: _Kept) -> None:
        """Hold what is kept of a shard; other jobs that have kept nothing for long are taken to have ended."""
        now = self._clock()
        for other in [other for other, used_at in self._used_at.items() if other != job and now - used_at >= PATIENCE]:
            del self._jobs[other], self._used_at[other]
        self._jobs.setdefault(job, {})[level, shard] = kept
        self._used_at[job] = now

    def __len__(self) -> int:
        """Of how many jobs there is something."""
        return len(self._jobs)


held: Held[Kept] = Held()
