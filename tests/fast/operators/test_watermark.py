"""The progress of event time: several partitions, several streams, and silence."""

from __future__ import annotations

from datetime import timedelta

from headrace.operators.event_time.epoch_time import BEGINNING
from headrace.operators.event_time.watermark import StreamTime, overall_watermark
from headrace.plan.watermarks import Bounded

SECOND = 1_000_000
RULE = Bounded(timedelta(seconds=2), idle=timedelta(seconds=60))
PATIENT = Bounded(timedelta(seconds=2))


def ten_second_windows(moment: int) -> int:
    return moment // (10 * SECOND) * 10 * SECOND + 10 * SECOND


def seen(latest: dict[int, int], now: int, rule: Bounded = RULE, before: StreamTime | None = None) -> StreamTime:
    times = {partition: second * SECOND for partition, second in latest.items()}
    return (before or StreamTime()).observe(times, now * SECOND).advance(rule, now * SECOND, ten_second_windows)


def test_a_stream_is_as_far_as_the_partition_that_is_furthest_behind() -> None:
    assert seen({0: 100, 1: 50}, now=0).watermark == 48 * SECOND


def test_an_idle_partition_is_left_out_and_one_that_never_spoke_too() -> None:
    before = seen({0: 100, 1: 50}, now=0)
    assert seen({0: 120}, now=59, before=before).watermark == 48 * SECOND
    assert seen({0: 120}, now=60, before=before).watermark == 118 * SECOND


def test_time_never_goes_back() -> None:
    before = seen({0: 100}, now=0)
    assert seen({1: 10}, now=1, before=before).watermark == 98 * SECOND


def test_silence_of_everything_closes_the_last_window_and_says_so() -> None:
    silent = seen({}, now=60, before=seen({0: 101}, now=0))
    assert (silent.watermark, silent.asleep) == (110 * SECOND, True)
    assert overall_watermark([silent], 99 * SECOND) == (110 * SECOND, True)
    assert overall_watermark([silent], 110 * SECOND) == (110 * SECOND, False)


def test_an_app_is_as_far_as_the_stream_that_is_furthest_behind() -> None:
    assert overall_watermark([seen({0: 100}, now=0), seen({0: 50}, now=0)], BEGINNING) == (48 * SECOND, False)
    assert overall_watermark([seen({0: 100}, now=0), seen({}, now=0)], BEGINNING) == (BEGINNING, False)
    assert overall_watermark([], 7) == (7, False)


def test_a_stream_that_fell_silent_does_not_hold_the_others_back() -> None:
    silent = seen({}, now=60, before=seen({0: 50}, now=0))
    assert overall_watermark([seen({0: 100}, now=60), silent], 48 * SECOND) == (98 * SECOND, False)


def test_a_stream_that_never_spoke_is_waited_for_as_long_as_idle_says() -> None:
    mute, patient = seen({}, now=0), seen({}, now=0, rule=PATIENT)
    talking = seen({0: 100}, now=60)
    assert overall_watermark([talking, seen({}, now=59, before=mute)], BEGINNING)[0] == BEGINNING
    assert overall_watermark([talking, seen({}, now=60, before=mute)], BEGINNING)[0] == 98 * SECOND
    assert overall_watermark([talking, seen({}, now=9999, rule=PATIENT, before=patient)], BEGINNING)[0] == BEGINNING


def test_progress_is_the_same_after_a_journey_through_an_offset() -> None:
    progress = seen({}, now=60, before=seen({0: 50, 3: 7}, now=0))
    assert StreamTime.from_json(progress.to_json()) == progress
