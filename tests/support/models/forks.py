"""Random chains of which two share their first steps: two outputs of one step."""

from __future__ import annotations

import random

from tests.support.models.chains import Chain, Place
from tests.support.models.wide_chains import wide_links


def fork(name: str, chance: random.Random) -> tuple[Chain, Chain, int]:
    """Two chains with the same first steps, each with models of its own, and how many they share."""
    unit, behind = chance.choice([1, 1, 360]), (chance.randint(1, 2), chance.randint(0, 2))
    trunks = [wide_links(random.Random(name), 1, Place(unit)) for _ in behind]
    one, two = (Chain((*trunk, *wide_links(chance, count, trunk[-1].behind)), unit) for trunk, count in zip(trunks, behind, strict=True))
    return one, two, len(trunks[0])
