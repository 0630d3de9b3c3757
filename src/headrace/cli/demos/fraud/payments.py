"""Payments of many cards in the order of time, with planted fraud and the truth about it.

Payments that are not planted break no rule, by construction: a card pays once a cycle, near the place where it is.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headrace.cli.demos.fraud.cards import Cards
from headrace.cli.demos.fraud.cases import PLOTS, SECOND, Paid
from headrace.cli.demos.fraud.places import COUNTRIES, DAILY, LARGE, LATITUDES, LONGITUDES, RISKY
from headrace.cli.demos.fraud.rules import SPREE
from headrace.core.columns.schema import TIMESTAMP

# Seconds in which every card pays once. Six payments in ten minutes stay below every rule.
CYCLE = 120.0
PER_CASE = 400
_QUIET = 90 * SECOND
_HOUR = 3_600 * SECOND
# At most some fifty meters from the center, so that no walk looks like a flight.
_DEGREES = 0.0005
_SHUFFLED = 10


@dataclass(frozen=True)
class PlantedCase:
    """A planted fraud: the rule it breaks, its card and its payments."""

    rule: str
    card: str
    payments: tuple[str, ...]
    ended_at: int


@dataclass(order=True)
class _Planned:
    at: int
    number: int
    card: int = field(compare=False)
    paid: Paid = field(compare=False)


class Payments:
    """Makes payments up to a moment, again and again; `cases` are the planted ones, complete from their last payment on."""

    def __init__(self, cards: Cards, seed: int, *, begin: int, per_case: int = PER_CASE) -> None:
        self.cases: list[PlantedCase] = []
        self._cards, self._random, self._per_case = cards, np.random.default_rng(seed), per_case
        self._last, self._made, self._since_case = begin, 0, 0
        self._paid_at, self._large_at = (np.full(cards.count, begin - 2 * _HOUR) for _ in range(2))
        self._stolen = np.zeros(cards.count, dtype=bool)
        self._planned: list[_Planned] = []
        self._open: dict[int, tuple[str, int, list[str]]] = {}
        self._order = self._random.permutation(cards.count)
        self._place = 0
        self._rules = [*PLOTS]

    def until(self, moment: int, count: int) -> pa.Table:
        """A number of everyday payments up to a moment, and the planted ones of that time, in the order of time."""
        times = np.linspace(self._last, moment, count, endpoint=False).astype(np.int64) + 1
        chosen = self._next_cards(count)
        free = ~self._stolen[chosen]
        rows = self._everyday(chosen[free], times[free])
        self._since_case += count
        while self._since_case >= self._per_case:
            self._since_case -= self._per_case
            self._plan(moment)
        self._last = moment
        return self._table(rows, self._due(moment))

    def rest(self) -> pa.Table:
        """The payments of cases that are not complete yet."""
        return self._table([], self._due(2**62))

    def _next_cards(self, count: int) -> np.ndarray:
        found = []
        while count > 0:
            part = self._order[self._place : self._place + count].copy()
            found.append(part)
            self._place += len(part)
            count -= len(part)
            if self._place == len(self._order):
                # Cards change places with near ones only, so that none pays twice within a short time.
                for share in np.array_split(self._order, _SHUFFLED):
                    self._random.shuffle(share)
                self._place = 0
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _everyday(self, cards: np.ndarray, times: np.ndarray) -> list[tuple[int, int, Paid]]:
        count, random = len(cards), self._random
        ratios = np.clip(random.lognormal(-0.1, 0.5, count), 0.1, 3.0)
        categories = random.choice(DAILY, count).astype(object)
        risky = random.random(count) < 0.01
        categories[risky], ratios[risky] = random.choice(RISKY, int(risky.sum())), np.minimum(ratios[risky], 2.0)
        amounts = self._cards.typical[cards] * ratios
        large = (random.random(count) < 0.005) & (times - self._large_at[cards] > _HOUR) & ~risky
        amounts[large], categories[large] = random.uniform(300, 1_900, int(large.sum())), random.choice(LARGE, int(large.sum()))
        self._large_at[cards[large]] = times[large]
        self._paid_at[cards] = times
        cities = self._cards.cities[cards].tolist()
        paid = zip(times.tolist(), cities, categories.tolist(), np.round(amounts, 2).tolist(), strict=True)
        return [(one[0], card, Paid(*one)) for card, one in zip(cards.tolist(), paid, strict=True)]

    def _plan(self, now: int) -> None:
        """Begin a case with a card that has been quiet for a while; it pays nothing else any more."""
        rule = self._rules[0]
        pool = self._cards.at_borders if rule == SPREE else np.flatnonzero(~self._cards.traveling)
        pool = self._random.choice(pool, min(64, len(pool)), replace=False) if len(pool) else pool
        quiet = ~self._stolen[pool] & (now - self._paid_at[pool] > _QUIET) & (now - self._large_at[pool] > _HOUR)
        if not quiet.any():
            return
        self._rules.append(self._rules.pop(0))
        card = int(pool[quiet][0])
        self._stolen[card] = True
        paid = PLOTS[rule](self._cards, card, now + 1, self._random)
        self._open[card] = (rule, len(paid), [])
        for one in paid:
            heapq.heappush(self._planned, _Planned(one.at, len(self._planned), card, one))

    def _due(self, moment: int) -> Iterator[tuple[int, int, Paid]]:
        while self._planned and self._planned[0].at <= moment:
            one = heapq.heappop(self._planned)
            yield one.at, one.card, one.paid

    def _table(self, everyday: list[tuple[int, int, Paid]], planted: Iterator[tuple[int, int, Paid]]) -> pa.Table:
        rows = sorted([*everyday, *planted], key=lambda row: row[:2])
        cards = np.array([card for _, card, _ in rows], np.int64)
        cities = np.array([paid.city for *_, paid in rows], np.int64)
        ids = [f"p-{self._made + number:09}" for number in range(len(rows))]
        self._made += len(rows)
        for one, (at, card, _) in zip(ids, rows, strict=True):
            if card in self._open:
                self._tell(one, card, at)
        offsets = self._random.uniform(-_DEGREES, _DEGREES, (2, len(rows)))
        categories = [paid.category for *_, paid in rows]
        numbers = self._random.integers(0, 40, len(rows)).tolist()
        return pa.table(
            {
                "id": pa.array(ids, pa.string()),
                "card": pa.array(self._cards.names[cards].tolist(), pa.string()),
                "merchant": pa.array([f"{kind} {n}" for kind, n in zip(categories, numbers, strict=True)], pa.string()),
                "category": pa.array(categories, pa.string()),
                "amount": pa.array([paid.amount for *_, paid in rows], pa.float64()),
                "country": pa.array(COUNTRIES[cities].tolist(), pa.string()),
                "lat": pa.array(LATITUDES[cities] + offsets[0]),
                "lon": pa.array(LONGITUDES[cities] + offsets[1]),
                "paid_at": pa.array([at for at, *_ in rows], TIMESTAMP),
            }
        )

    def _tell(self, payment: str, card: int, at: int) -> None:
        """Note a payment of a case; with the last one it is known."""
        rule, wanted, ids = self._open[card]
        ids.append(payment)
        if len(ids) == wanted:
            self.cases.append(PlantedCase(rule, str(self._cards.names[card]), tuple(ids), at))
            del self._open[card]
