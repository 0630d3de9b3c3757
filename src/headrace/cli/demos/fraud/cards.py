"""The cards of the demo: where each is at home, and what it usually pays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.cli.demos.fraud.places import ACROSS, CITIES, COUNTRIES, LATITUDES, LONGITUDES

LOWEST, HIGHEST = 20.0, 120.0
_TRAVELING = 0.03


class Cards:
    """A number of cards by their numbers, other ones for each seed; a few of them are abroad all the time."""

    def __init__(self, count: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.count = count
        self.names = np.array([f"card-{seed % 1_000:03}-{number:06}" for number in range(count)])
        self.homes = random.integers(0, len(CITIES), count)
        self.typical = np.round(np.clip(random.lognormal(3.8, 0.5, count), LOWEST, HIGHEST), 2)
        self.traveling = random.random(count) < _TRAVELING
        self.cities = np.where(self.traveling, (self.homes + 7) % len(CITIES), self.homes)

    @property
    def at_borders(self) -> np.ndarray:
        """The cards that are at home in a city at a border."""
        return np.flatnonzero((self.homes < len(ACROSS)) & ~self.traveling)

    def profiles(self) -> pa.Table:
        """The rows of the table of cards."""
        return pa.table(
            {
                "card": self.names,
                "home_country": COUNTRIES[self.homes],
                "home_lat": LATITUDES[self.homes],
                "home_lon": LONGITUDES[self.homes],
                "typical_amount": self.typical,
            }
        )
