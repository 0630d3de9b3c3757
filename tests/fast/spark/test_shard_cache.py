"""The state that a worker has in memory between epochs."""

from __future__ import annotations

from headrace.spark.workers.shard_cache import PATIENCE, ShardCache


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_state_of_a_job_that_ended_goes_when_another_is_at_work() -> None:
    clock = Clock()
    held: ShardCache[object] = ShardCache(clock)
    epochs = range(1, 4)
    held.keep("ended", 1, 0, "state")
    for epoch in epochs:
        clock.now = epoch * PATIENCE / len(epochs)
        assert len(held) == (1 if epoch == 1 else 2)
        held.keep("at work", 1, 0, epoch)
    assert len(held) == 1
    assert held.take("ended", 1, 0) is None
    assert held.take("at work", 1, 0) == 3


def test_jobs_that_take_turns_keep_their_state() -> None:
    clock = Clock()
    held: ShardCache[int] = ShardCache(clock)
    jobs = ("first", "second")
    for epoch in range(1, 20):
        clock.now += PATIENCE / 2
        for job in jobs:
            held.keep(job, 1, 0, epoch)
            held.keep(job, 1, 1, epoch)
    for job in jobs:
        assert [held.take(job, 1, shard) for shard in (0, 1)] == [19, 19]


def test_a_silent_job_keeps_its_state_while_it_is_alone() -> None:
    clock = Clock()
    held: ShardCache[int] = ShardCache(clock)
    held.keep("silent", 1, 0, 1)
    clock.now = 100 * PATIENCE
    assert held.take("silent", 1, 0) == 1
    held.keep("silent", 1, 0, 2)
    assert held.take("silent", 1, 0) == 2


def test_what_a_task_has_taken_is_not_there_for_its_second_attempt() -> None:
    held: ShardCache[int] = ShardCache()
    held.keep("job", 1, 0, 1)
    assert held.take("job", 1, 0) is not None
    assert held.take("job", 1, 0) is None
    held.keep("job", 2, 0, 1)
    assert held.take("job", 1, 0) is None
