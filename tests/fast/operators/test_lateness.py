"""The lateness of records, and the bound that keeps to a loss budget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.errors import PlanError
from headrace.operators.event_time.lateness_histogram import _EDGES, Lateness, chosen_bound, remembered
from headrace.operators.event_time.watermark import StreamTime
from headrace.plan.watermarks import LossBudget
from tests.support.examples import examples

SECOND = 1_000_000
RULE = LossBudget(0.1, timedelta(minutes=1))

times = st.lists(st.integers(0, 500).map(lambda tenths: tenths * SECOND // 10), min_size=1, max_size=60)


def behind(seconds: Sequence[float]) -> Lateness:
    """A partition whose first record is ahead of all, and the others so far behind it."""
    return Lateness.of(np.array([10**6 * SECOND, *(round((10**6 - second) * SECOND) for second in seconds)]))


def plainly(moments: list[int]) -> list[int]:
    return [max(moments[: place + 1]) - moment for place, moment in enumerate(moments)]


@given(times, st.sampled_from([0.01, 0.1, 0.25, 0.5]))
@settings(max_examples=examples(60))
def test_the_bound_is_the_smallest_edge_that_keeps_to_the_share(moments: list[int], share: float) -> None:
    lateness, bound = plainly(moments), Lateness.of(np.array(moments)).bound(share)
    lost = [sum(late > edge for late in lateness) for edge in (bound, max([-1, *_EDGES[bound > _EDGES].tolist()]))]
    assert lost[0] <= share * len(moments) < lost[1]


@given(times, st.integers(0, 60))
@settings(max_examples=examples(40))
def test_records_teach_the_same_however_they_are_cut(moments: list[int], cut: int) -> None:
    first, second = np.array(moments[:cut], np.int64), np.array(moments[cut:], np.int64)
    whole = Lateness.of(np.array(moments))
    assert Lateness.of(first).plus(Lateness.of(second, max(moments[:cut], default=None))) == whole
    assert Lateness.from_json(whole.to_json()) == whole


def test_edges_are_at_most_a_tenth_apart() -> None:
    inner = _EDGES[1:-1]
    assert (inner[1:] <= inner[:-1] * 1.112).all()
    assert set(np.array([1, 10, 60, 600, 1800, 3600]) * SECOND) <= set(inner.tolist())


def test_what_is_beyond_a_bound_is_told_for_any_bound() -> None:
    seen = behind([0, 0, 1, 5, 30])
    assert [seen.beyond(round(second * SECOND)) for second in (0, 0.9, 1, 4, 5, 29, 30, 99)] == [3, 3, 2, 2, 1, 1, 0, 0]
    assert [seen.quantile(share) / SECOND for share in (0.5, 0.9, 1)] == [0, 30, 30]


def test_a_loss_budget_begins_with_its_max_and_never_goes_above_it() -> None:
    assert chosen_bound(RULE, None) == chosen_bound(RULE, behind([1] * 8)) == 60 * SECOND
    assert chosen_bound(RULE, behind([1] * 8 + [30])) == 1 * SECOND
    assert chosen_bound(RULE, behind([90] * 50)) == 60 * SECOND


def test_what_is_older_counts_for_less_and_the_memory_stays_small() -> None:
    seen = None
    for late in [40] * 20 + [3] * 20:
        seen = remembered(RULE, seen, behind([late] * 1000))
        assert seen.total <= 10_000
    assert seen is not None
    assert chosen_bound(RULE, seen) == 3 * SECOND


def test_each_partition_has_its_own_bound_and_time_never_goes_back() -> None:
    progress = StreamTime().observe({0: 1000 * SECOND, 1: 1000 * SECOND}, 0)
    learned = progress.learn(RULE, {0: behind([5] * 9), 1: behind([20] * 9)}).advance(RULE, 0, lambda moment: moment)
    assert learned.bounds(RULE) == {0: 5 * SECOND, 1: 20 * SECOND}
    assert learned.watermark == 980 * SECOND
    later = learned.learn(RULE, {1: behind([50] * 99)}).advance(RULE, 0, lambda moment: moment)
    assert (later.bounds(RULE)[1], later.watermark) == (50 * SECOND, 980 * SECOND)
    assert StreamTime.from_json(later.to_json()) == later


@pytest.mark.parametrize(("share", "most"), [(0.0, "1"), (1.0, "1"), (0.1, "0")])
def test_a_budget_that_leaves_nothing_to_choose_is_refused(share: float, most: str) -> None:
    with pytest.raises(PlanError) as error:
        LossBudget(share, timedelta(minutes=int(most)))
    assert error.value.hint
