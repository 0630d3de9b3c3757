"""Planted fraud: for each rule the payments of one card that break it, and no other rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headrace.cli.demos.fraud.cards import Cards
from headrace.cli.demos.fraud.places import CITIES, DAILY, LARGE, RISKY, far_from
from headrace.cli.demos.fraud.rules import BURST, FLIGHT, SCORE, SPENDING, SPREE

SECOND = 1_000_000


@dataclass(frozen=True)
class Paid:
    """One payment of a case: its time in microseconds, city, category and amount."""

    at: int
    city: int
    category: str
    amount: float


Plot = Callable[[Cards, int, int, np.random.Generator], list[Paid]]


def burst(cards: Cards, card: int, at: int, random: np.random.Generator) -> list[Paid]:
    """Six to nine small payments in a minute: somebody tries whether the card works."""
    gaps = random.uniform(2, 6, int(random.integers(6, 10)))
    home = int(cards.homes[card])
    return [Paid(when, home, "transport", _money(random.uniform(1, 9))) for when in _times(at, gaps)]


def spending(cards: Cards, card: int, at: int, random: np.random.Generator) -> list[Paid]:
    """Three or four large purchases, more than $5,000 within ten minutes."""
    gaps = random.uniform(20, 60, int(random.integers(3, 5)))
    home = int(cards.homes[card])
    return [Paid(when, home, str(random.choice(LARGE)), _money(random.uniform(1_700, 2_400))) for when in _times(at, gaps)]


def flight(cards: Cards, card: int, at: int, random: np.random.Generator) -> list[Paid]:
    """A payment at home, and one some minutes later in a city that no airplane reaches by then."""
    home = int(cards.homes[card])
    places, usual = (home, far_from(home, random)), cards.typical[card]
    times = _times(at, random.uniform(60, 240, 2))
    return [
        Paid(when, city, str(random.choice(DAILY)), _money(usual * random.uniform(0.5, 1.5)))
        for when, city in zip(times, places, strict=True)
    ]


def spree(cards: Cards, card: int, at: int, random: np.random.Generator) -> list[Paid]:
    """Three payments over $500 in five minutes, on both sides of a border."""
    home = int(cards.homes[card])
    gaps = random.uniform(80, 110, 3)
    return [
        Paid(when, home if number != 1 else home + len(CITIES), str(random.choice(LARGE)), _money(random.uniform(520, 900)))
        for number, when in enumerate(_times(at, gaps))
    ]


def unlikely(cards: Cards, card: int, at: int, random: np.random.Generator) -> list[Paid]:
    """One payment that breaks no rule, and is unlike the card: the model has to find it."""
    amount = cards.typical[card] * random.uniform(6, 10)
    return [Paid(at, int(cards.homes[card]), str(random.choice(RISKY)), _money(amount))]


PLOTS: dict[str, Plot] = {BURST: burst, SPENDING: spending, FLIGHT: flight, SPREE: spree, SCORE: unlikely}


def _times(at: int, gaps: np.ndarray) -> list[int]:
    return [at + int(offset * SECOND) for offset in np.cumsum(gaps) - gaps[0]]


def _money(amount: float) -> float:
    return round(float(amount), 2)
