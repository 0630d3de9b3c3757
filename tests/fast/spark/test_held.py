"""What a worker holds in memory between epochs."""

from __future__ import annotations

from typing import cast

from headrace.operators.contract import Stateful
from headrace.spark.held import PATIENCE, Held


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def state() -> Stateful:
    return cast("Stateful", object())


def test_state_of_a_job_that_ended_goes_when_another_is_at_work() -> None:
    clock = Clock()
    held, kept, epochs = Held(clock), state(), range(1, 4)
    held.keep("ended", "views", 0, (7, state()))
    for epoch in epochs:
        clock.now = epoch * PATIENCE / len(epochs)
        assert len(held) == (1 if epoch == 1 else 2)
        held.keep("at work", "views", 0, (epoch, kept))
    assert len(held) == 1
    assert held.take("ended", "views", 0) is None
    assert held.take("at work", "views", 0) == (3, kept)


def test_jobs_that_take_turns_keep_their_state() -> None:
    clock = Clock()
    held, states = Held(clock), {"first": state(), "second": state()}
    for epoch in range(1, 20):
        clock.now += PATIENCE / 2
        for job, kept in states.items():
            held.keep(job, "views", 0, (epoch, kept))
            held.keep(job, "views", 1, (epoch, kept))
    for job, kept in states.items():
        assert [held.take(job, "views", shard) for shard in (0, 1)] == [(19, kept), (19, kept)]


def test_a_silent_job_keeps_its_state_while_it_is_alone() -> None:
    clock = Clock()
    held, kept = Held(clock), state()
    held.keep("silent", "views", 0, (1, kept))
    clock.now = 100 * PATIENCE
    assert held.take("silent", "views", 0) == (1, kept)
    held.keep("silent", "views", 0, (2, kept))
    assert held.take("silent", "views", 0) == (2, kept)


def test_what_a_task_has_taken_is_not_there_for_its_second_attempt() -> None:
    held = Held()
    held.keep("job", "views", 0, (1, state()))
    assert held.take("job", "views", 0) is not None
    assert held.take("job", "views", 0) is None
