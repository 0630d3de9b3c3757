"""A stretch of payments at once, with the truth about it: for tests, training and backtests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from headrace.cli.demos.fraud.cards import Cards
from headrace.cli.demos.fraud.cases import SECOND
from headrace.cli.demos.fraud.payments import PER_CASE, Payments, PlantedCase
from headrace.core.clock import to_microseconds


@dataclass(frozen=True)
class History:
    """Payments in the order of time, and the fraud that is planted in them."""

    payments: pa.Table
    cases: list[PlantedCase]


def history(cards: Cards, seed: int, *, begin: datetime, seconds: int, rate: float, per_case: int = PER_CASE) -> History:
    """The payments of this many seconds at a rate per second; cases that are open at the end are completed."""
    first = to_microseconds(begin)
    made = Payments(cards, seed, begin=first, per_case=per_case)
    tables = [made.until(first + (second + 1) * SECOND, int((second + 1) * rate) - int(second * rate)) for second in range(seconds)]
    return History(pa.concat_tables([*tables, made.rest()]), made.cases)
