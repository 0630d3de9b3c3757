"""The events of an auction site: people, their auctions, and bids, with the ratios and columns of the published benchmark.

Of 50 events one is a person, three are auctions and 46 are bids. Half of the bids are on a hot auction, three in four come from a hot
bidder, and some name an auction or a person that comes a little later. An event depends on the seed and its number alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP

from .draws import Draws, chosen

_ROUND, _PEOPLE, _AUCTIONS = 50, 1, 3
_FIRST_ID, _FIRST_CATEGORY, _CATEGORIES = 1000, 10, 5
_IN_FLIGHT, _ACTIVE, _LEAD, _HOT = 100, 1000, 10, 100
_HOT_AUCTIONS, _HOT_PEOPLE = 1 / 2, 3 / 4
_CHANNELS = 10_000
_PERSON_EXTRA, _AUCTION_EXTRA, _BID_EXTRA = 130, 390, 68

_FIRST_NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
_LAST_NAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
_STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
_CITIES = ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"]
_HOT_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]

Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Events:
    """`count` events, `rate` of them in a second of event time.

    With `disorder` they come out of order: none comes after one that is younger by more than this number of events.
    """

    count: int
    rate: int = 10_000
    disorder: int = 0
    seed: int = 20260101

    begin: ClassVar[datetime] = datetime(2026, 1, 1, 12, tzinfo=UTC)

    @property
    def longest_auction(self) -> timedelta:
        """No auction is open for longer: twice the time in which as many begin as are in flight."""
        return timedelta(microseconds=self._at(2 * _IN_FLIGHT * _ROUND // _AUCTIONS)) + timedelta(milliseconds=2)

    def batches(self, size: int) -> Iterator[Tables]:
        """The events in the order in which they come, `size` at a time; each batch has a table of every kind."""
        numbers = np.arange(self.count, dtype=np.int64)
        if self.disorder:
            delays = np.random.default_rng([self.seed, 2]).integers(0, self.disorder + 1, self.count)
            numbers = np.argsort(numbers + delays, kind="stable")
        for first in range(0, self.count, size):
            yield self._tables(numbers[first : first + size])

    def tables(self) -> Tables:
        """All of them at once."""
        return next(self.batches(self.count))

    def _tables(self, numbers: np.ndarray) -> Tables:
        place = numbers % _ROUND
        people = numbers[place < _PEOPLE]
        auctions = numbers[(place >= _PEOPLE) & (place < _PEOPLE + _AUCTIONS)]
        bids = numbers[place >= _PEOPLE + _AUCTIONS]
        return {"person": self._people(people), "auction": self._auctions(auctions), "bid": self._bids(bids)}

    def _people(self, numbers: np.ndarray) -> pa.Table:
        draws = Draws(self.seed, numbers)
        return pa.table(
            {
                "id": _last_person(numbers) + _FIRST_ID,
                "name": draws.names([f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES]),
                "emailAddress": draws.texts(14),
                "creditCard": pa.array([f"{card:016d}" for card in draws.below(10**16).tolist()], pa.string()),
                "city": draws.names(_CITIES),
                "state": draws.names(_STATES),
                "dateTime": self._times(numbers),
                "extra": draws.texts(_PERSON_EXTRA),
            }
        )

    def _auctions(self, numbers: np.ndarray) -> pa.Table:
        draws, begins = Draws(self.seed, numbers), self._milliseconds(numbers)
        horizon = self._at(_IN_FLIGHT * _ROUND // _AUCTIONS) // 1000
        price, length = _prices(draws), 1 + draws.below(max(2 * horizon, 1))
        return pa.table(
            {
                "id": _last_auction(numbers) + _FIRST_ID,
                "itemName": draws.texts(20),
                "description": draws.texts(50),
                "initialBid": price,
                "reserve": price + _prices(draws),
                "dateTime": pa.array(begins * 1000, TIMESTAMP),
                "expires": pa.array((begins + length) * 1000, TIMESTAMP),
                "seller": _some_person(draws, numbers, 0) + _FIRST_ID,
                "category": _FIRST_CATEGORY + draws.below(_CATEGORIES),
                "extra": draws.texts(_AUCTION_EXTRA),
            }
        )

    def _bids(self, numbers: np.ndarray) -> pa.Table:
        draws, (names, urls) = Draws(self.seed, numbers), _channels(self.seed)
        hot, others = draws.below(len(_HOT_CHANNELS)), len(_HOT_CHANNELS) + draws.below(_CHANNELS)
        channel = np.where(draws.uniform() < 1 / 2, hot, others)
        return pa.table(
            {
                "auction": _some_auction(draws, numbers) + _FIRST_ID,
                "bidder": _some_person(draws, numbers, 1) + _FIRST_ID,
                "price": _prices(draws),
                "channel": chosen(names, channel),
                "url": chosen(urls, channel),
                "dateTime": self._times(numbers),
                "extra": draws.texts(_BID_EXTRA),
            }
        )

    def _at(self, number: int) -> int:
        return number * 1_000_000 // self.rate

    def _milliseconds(self, numbers: np.ndarray) -> np.ndarray:
        return int(self.begin.timestamp()) * 1000 + numbers * 1000 // self.rate

    def _times(self, numbers: np.ndarray) -> pa.Array:
        return pa.array(self._milliseconds(numbers) * 1000, TIMESTAMP)


def _last_person(numbers: np.ndarray) -> np.ndarray:
    return numbers // _ROUND


def _last_auction(numbers: np.ndarray) -> np.ndarray:
    """The newest auction, from 0, when an event happens; before the first one it is -1."""
    place = np.clip(numbers % _ROUND - _PEOPLE, -1, _AUCTIONS - 1)
    return numbers // _ROUND * _AUCTIONS + place


def _some_auction(draws: Draws, numbers: np.ndarray) -> np.ndarray:
    """The last multiple of the hot ratio, or one of those in flight, or one that is yet to come."""
    last = np.maximum(_last_auction(numbers), 0)
    oldest = np.maximum(last - _IN_FLIGHT, 0)
    other = oldest + draws.below(last - oldest + 1 + _LEAD)
    return np.where(draws.uniform() < _HOT_AUCTIONS, last // _HOT * _HOT, other)


def _some_person(draws: Draws, numbers: np.ndarray, beside: int) -> np.ndarray:
    """The one `beside` the last multiple of the hot ratio, or one of those that are active, or one that is yet to come."""
    people = _last_person(numbers) + 1
    active = np.minimum(people, _ACTIVE)
    other = people - active + draws.below(active + _LEAD)
    return np.where(draws.uniform() < _HOT_PEOPLE, (people - 1) // _HOT * _HOT + beside, other)


def _prices(draws: Draws) -> np.ndarray:
    return np.round(10 ** (draws.uniform() * 6) * 100).astype(np.int64)


@cache
def _channels(seed: int) -> tuple[list[str], list[str]]:
    """The names of all channels, the hot ones first, and the address of each; nine in ten of the others have their number in it."""
    hot = len(_HOT_CHANNELS)
    draws = Draws(seed, np.arange(hot + _CHANNELS))
    paths = zip(*(draws.texts(5).to_pylist() for _ in range(3)), strict=True)
    numbers, numbered = draws.below(2**31).tolist(), (draws.uniform() < 0.9).tolist()
    numbered[:hot] = [False] * hot
    tails = [f"&channel_id={number}" if said else "" for number, said in zip(numbers, numbered, strict=True)]
    urls = [f"https://www.nexmark.com/{'/'.join(path)}/item.htm?query=1{tail}" for path, tail in zip(paths, tails, strict=True)]
    return [*_HOT_CHANNELS, *(f"channel-{index}" for index in range(_CHANNELS))], urls
