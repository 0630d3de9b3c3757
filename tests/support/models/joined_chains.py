"""Random chains behind a join of two others within a time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.api.stream import Stream
from tests.support.models.chains import Chain, Flow, Link, Place
from tests.support.models.keyed import Passing
from tests.support.models.rows import FOREVER, Epoch, Relation, Row
from tests.support.models.wide_chains import wide_links


@dataclass
class Keyed(Passing):
    """`where("k is not null")`."""

    def narrowed(self, epoch: Epoch) -> Epoch:
        added, removed = ([row for row in rows if row["k"] is not None] for rows in (epoch.added, epoch.removed))
        return replace(epoch, added=added, removed=removed)


@dataclass
class Within:
    """`one.join_within(two, on="k", within=(before, after), how=)` of facts: all pairs of records that are not late, and with `left` each
    left record that had none when the watermark, less the lateness of the right side, has passed the last that it could have."""

    flows: tuple[Flow, Flow]
    lateness: tuple[int, int]
    before: int
    after: int
    left: bool
    by: Sequence[str] = ("k",)
    _late: int = 0
    _rows: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))

    @property
    def late(self) -> int:
        return self._late + sum(flow.late for flow in self.flows)

    @late.setter
    def late(self, count: int) -> None:
        self._late = count

    def epoch(self, epoch: Epoch) -> Relation:
        for flow, lateness, rows in zip(self.flows, self.lateness, self._rows, strict=True):
            came = flow.epoch(epoch)
            assert not came.removed
            kept = [row for row in came.added if row.time >= epoch.before - lateness]
            self._late += len(came.added) - len(kept)
            rows.extend(kept)
        found: Relation = Counter()
        passed = epoch.after if epoch.after == FOREVER else epoch.after - self.lateness[1]
        for one in self._rows[0]:
            matches = [two for two in self._rows[1] if one["k"] == two["k"] is not None and self._near(one, two)]
            found.update(_pair(one, two) for two in matches)
            if not matches and self.left and one.time + self.after < passed:
                found[_pair(one, None)] += 1
        return found

    def _near(self, one: Row, two: Row) -> bool:
        return -self.before <= two.time - one.time <= self.after


def _pair(one: Row, two: Row | None) -> Row:
    time = one.time if two is None else max(one.time, two.time)
    return Row.of(time, k=one["k"], v=one["v"], w=None if two is None else two["v"])


def joined(chance: random.Random) -> Chain:
    """Two chains of facts, their join, and perhaps a step behind it."""
    place = Place(chance.choice([1, 360]))
    sides = [_side(chance, place) for _ in range(2)]
    before, after, left = chance.choice([0, 3, 10]), chance.choice([0, 3, 10]), chance.random() < 0.4
    lateness = [side[-1].behind.lateness for side in sides]

    def declare(stream: Stream) -> Any:
        one, two = (_declared(stream, side, column) for side, column in zip(sides, ("v", "v as w"), strict=True))
        within = (place.spelled(before), place.spelled(after))
        return one.join_within(two, on="k", within=within, how="left" if left else "inner")

    model = Within((Flow(sides[0]), Flow(sides[1])), (lateness[0], lateness[1]), place.time(before), place.time(after), left)
    words = " | ".join(" -> ".join(link.words for link in side) for side in sides)
    # A left record without a match comes as late as that is known.
    behind = Place(place.unit, keys=("k",), lateness=max(lateness) + left * place.time(after), told=True)
    link = Link(f"[{words}] join_within(({before}, {after}), left={left})", declare, model, behind)
    return Chain((link, *wide_links(chance, chance.choice([0, 1, 1, 2]), behind)), place.unit)


def _side(chance: random.Random, place: Place) -> list[Link]:
    """A chain whose results are facts that still have the key. A record without one meets nothing; when that is told is left open."""
    first = Link("where(k is not null)", lambda stream: stream.where("k is not null"), Keyed(), place)
    while True:
        found = [first, *wide_links(chance, chance.choice([0, 1, 1, 2]), place)]
        last = found[-1].behind
        if "k" in last.keys and not (last.changing or last.restates or last.endless or last.tabled):
            return found


def _declared(stream: Stream, links: Sequence[Link], column: str) -> Any:
    made: Any = stream
    for link in links:
        made = link.declare(made)
    return made.select("k", column)
