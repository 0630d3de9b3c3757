"""Random compositions of steps against models of them: no difference, or refused when declared.

`make fuzz` draws fresh ones; `HEADRACE_SEED=5000` draws those from 5000 on.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.support.examples import seeds
from tests.support.models.chains import chain
from tests.support.models.stories import Story
from tests.support.models.unions import united


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("length", "block"), [(1, 0), *((length, block) for length in (2, 3) for block in range(4))])
def test_steps_behind_each_other_give_what_they_mean(length: int, block: int) -> None:
    became: Counter[str] = Counter()
    for seed in seeds(50, block):
        became[Story(chain(random.Random(f"chain {length} {seed}"), length), seed).run()] += 1
    # Of two steps one in fifteen is refused, of three one in seven; of a few draws now and then nearly half.
    assert became["same"] > sum(became.values()) // 4, became


def test_steps_behind_two_windows_as_one_stream_give_what_they_mean() -> None:
    became = Counter(Story(united(random.Random(f"union {seed}")), seed).run() for seed in seeds(40))
    assert became["same"] > sum(became.values()) // 4, became
