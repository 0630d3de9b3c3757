"""Random compositions with changes as facts, arrays, functions, joins and places in a top, over unions and watermarks of every kind.

Models say what each epoch leaves: no difference, or refused when declared. `make fuzz` draws fresh ones.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.support.examples import seeds
from tests.support.models.forks import fork
from tests.support.models.joined_chains import joined
from tests.support.models.stories import Story
from tests.support.models.wide_chains import wide_chain


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("length", "block"), [(length, block) for length in (2, 3) for block in range(4)])
def test_any_steps_behind_any_input_give_what_they_mean(length: int, block: int) -> None:
    became: Counter[str] = Counter()
    for seed in seeds(50, block):
        became[Story(wide_chain(random.Random(f"wide {length} {seed}"), length), seed, wide=True).run()] += 1
    assert became["same"] > sum(became.values()) // 5, became


@pytest.mark.timeout(240)
@pytest.mark.parametrize("block", range(2))
def test_two_outputs_of_one_step_give_what_each_gives_alone(block: int) -> None:
    became: Counter[str] = Counter()
    for seed in seeds(50, block):
        one, two, shared = fork(f"trunk {seed}", random.Random(f"fork {seed}"))
        became[Story(one, seed, [two], shared, wide=True).run()] += 1
    assert became["same"] > sum(became.values()) // 5, became


@pytest.mark.timeout(240)
@pytest.mark.parametrize("block", range(2))
def test_joins_of_any_facts_give_what_they_mean(block: int) -> None:
    became: Counter[str] = Counter()
    for seed in seeds(50, block):
        became[Story(joined(random.Random(f"join {seed}")), seed, wide=True).run()] += 1
    assert became["same"] > sum(became.values()) // 5, became
