"""Cities that cards are at home in, and shops by what they sell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class City:
    """A city with its country and its place on the earth."""

    name: str
    country: str
    lat: float
    lon: float


CITIES = (
    City("Basel", "CH", 47.5596, 7.5886),
    City("Strasbourg", "FR", 48.5734, 7.7521),
    City("Detroit", "US", 42.3314, -83.0458),
    City("El Paso", "US", 31.7619, -106.4850),
    City("Berlin", "DE", 52.5200, 13.4050),
    City("Cape Town", "ZA", -33.9249, 18.4241),
    City("Chicago", "US", 41.8781, -87.6298),
    City("Lagos", "NG", 6.5244, 3.3792),
    City("London", "GB", 51.5074, -0.1278),
    City("Madrid", "ES", 40.4168, -3.7038),
    City("Mexico City", "MX", 19.4326, -99.1332),
    City("Mumbai", "IN", 19.0760, 72.8777),
    City("New York", "US", 40.7128, -74.0060),
    City("Paris", "FR", 48.8566, 2.3522),
    City("Sao Paulo", "BR", -23.5505, -46.6333),
    City("Singapore", "SG", 1.3521, 103.8198),
    City("Sydney", "AU", -33.8688, 151.2093),
    City("Tokyo", "JP", 35.6762, 139.6503),
    City("Warsaw", "PL", 52.2297, 21.0122),
)
# A few kilometers from the first cities, across the border: two countries without a quick journey.
ACROSS = (
    City("Weil am Rhein", "DE", 47.5936, 7.6190),
    City("Kehl", "DE", 48.5757, 7.8150),
    City("Windsor", "CA", 42.3149, -83.0364),
    City("Ciudad Juarez", "MX", 31.7380, -106.4870),
)
PLACES = CITIES + ACROSS
LATITUDES = np.array([city.lat for city in PLACES])
LONGITUDES = np.array([city.lon for city in PLACES])
COUNTRIES = np.array([city.country for city in PLACES])

# How often a shop of a kind turns out to be the end of stolen cards, from experience.
RISKS = {
    "groceries": 0.02, "restaurant": 0.03, "transport": 0.02, "fuel": 0.05, "clothes": 0.06, "travel": 0.10, "electronics": 0.15,
    "jewelry": 0.18, "betting": 0.80, "gift cards": 0.85, "crypto": 0.90,
}  # fmt: skip
DAILY = ("groceries", "restaurant", "transport", "fuel", "clothes")
LARGE = ("travel", "electronics", "jewelry")
RISKY = ("betting", "gift cards", "crypto")


def far_from(city: int, random: np.random.Generator) -> int:
    """A city at least a thousand kilometers away."""
    degrees = np.hypot(LATITUDES[: len(CITIES)] - LATITUDES[city], LONGITUDES[: len(CITIES)] - LONGITUDES[city])
    return int(random.choice(np.flatnonzero(degrees > 20)))
