"""The plan of an epoch as a value."""

from __future__ import annotations

import json

import numpy as np

from headrace.engine.planning.epoch_plan import EpochPlan, Range
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.event_time.lateness_histogram import Lateness
from headrace.operators.event_time.watermark import Reach, StreamTime

BEGUN = EpochPlan(1, {"clicks": "a1"}, {"clicks": {0: 4, 1: 7}}, {"clicks": StreamTime()}, watermark=5, clock=9)
LEARNED = Reach(4, 6, Lateness.of(np.array([9, 4, 7])))


def test_a_plan_comes_back_from_json_as_it_was() -> None:
    plan = EpochPlan(
        epoch=12,
        inputs={"clicks": "a1", "users": "b2"},
        positions={"clicks": {0: 4, 10: 7, 2: 9}, "users": {0: 1}},
        progress={"clicks": StreamTime({0: LEARNED, 10: Reach(3, 5)}, 2, 1, asleep=True), "users": StreamTime()},
        watermark=77,
        idle=True,
        clock=99,
        taken_at=98,
        limits={"clicks": 1_000, "users": 2_000},
        ended=11,
        begun={"clicks": {2: 5}},
        snapshots={"users": {0: 3}},
    )
    for one in (plan, BEGUN):
        assert EpochPlan.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_an_epoch_begins_where_the_one_before_it_ends_and_a_new_partition_at_its_first_record() -> None:
    plan = EpochPlan(2, {}, {"clicks": {0: 6, 1: 7, 2: 9}}, {}, watermark=8, idle=True, clock=10, begun={"clicks": {2: 5}})
    assert plan.ranges(BEGUN) == [Range("clicks", 0, 4, 6), Range("clicks", 2, 5, 9)]
    assert plan.time(BEGUN) == EpochTime(2, 5, 8, idle=True, clock_before=9, clock=10)


def test_the_clock_of_the_next_epoch_never_goes_back() -> None:
    assert [BEGUN.following(now).clock for now in (3, 9, 12)] == [9, 9, 12]
    assert BEGUN.following(12).time(BEGUN) == EpochTime(2, 5, 5, clock_before=9, clock=12)
