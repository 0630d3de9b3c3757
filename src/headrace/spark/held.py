"""State that a Python worker of Spark keeps in memory for the next epoch: workers live over many epochs, and over many jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.operators.contract import Stateful

# Nobody tells a worker that a job has ended. One that is only silent for so long reads its state again when it goes on.
PATIENCE = 300.0


class Held:
    """The decoded state of operators and shards, and the epoch it is of, by jobs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._jobs: dict[str, dict[tuple[str, int], tuple[int, Stateful]]] = {}
        self._used_at: dict[str, float] = {}

    def take(self, job: str, operator: str, shard: int) -> tuple[int, Stateful] | None:
        """What is held of a shard. It is held no more: if the task fails, what it did to it must not be seen."""
        return self._jobs.get(job, {}).pop((operator, shard), None)

    def keep(self, job: str, operator: str, shard: int, made: tuple[int, Stateful]) -> None:
        """Hold the state of a shard, as of an epoch; other jobs that have kept nothing for long are taken to have ended."""
        now = self._clock()
        for other in [other for other, used_at in self._used_at.items() if other != job and now - used_at >= PATIENCE]:
            del self._jobs[other], self._used_at[other]
        self._jobs.setdefault(job, {})[operator, shard] = made
        self._used_at[job] = now

    def __len__(self) -> int:
        """Of how many jobs there is something."""
        return len(self._jobs)


held = Held()
