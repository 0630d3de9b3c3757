"""Random chains over the union of two windows of the same stream."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tests.support.models.chains import Chain, Link, Place, group, sessions, slid, table, windows
from tests.support.models.rows import Epoch, Relation, Step


@dataclass
class Both:
    """`one.union(two)`: the rows of both."""

    one: Step
    two: Step

    @property
    def late(self) -> int:
        return self.one.late + self.two.late

    @late.setter
    def late(self, count: int) -> None:
        raise AttributeError("each of the two counts its own")

    def epoch(self, epoch: Epoch) -> Relation:
        return self.one.epoch(epoch) + self.two.epoch(epoch)


def united(chance: random.Random) -> Chain:
    """Two windows as one stream, an aggregation over them, and perhaps a table."""
    place = Place(chance.choice([1, 360]))
    one, two = _window(chance, place), _window(chance, place)
    while one.behind.keys != two.behind.keys:
        two = _window(chance, place)
    behind = replace(
        one.behind,
        own=(),
        window=(),
        changing=one.behind.changing or two.behind.changing,
        lateness=max(one.behind.lateness, two.behind.lateness),
    )
    both = Link(f"[{one.words} + {two.words}]", lambda s: one.declare(s).union(two.declare(s)), Both(one.model, two.model), behind)
    links = [both, chance.choice([group, windows])(chance, behind)]
    if chance.random() < 0.4 and links[-1].behind.keys:
        links.append(table(chance, links[-1].behind))
    return Chain(tuple(links), place.unit)


def _window(chance: random.Random, place: Place) -> Link:
    """A window with a key, whose results do not repeat each other and have an end."""
    while True:
        made = chance.choice([windows, windows, sessions, slid])(chance, place)
        if made.behind.keys and not made.behind.restates and not made.behind.endless:
            return made
