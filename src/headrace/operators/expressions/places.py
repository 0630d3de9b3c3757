"""Distances and speeds between places of the earth, and the cells of H3 that they are in."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from headrace.operators.expressions.kernels import over_numbers
from headrace.operators.expressions.parts import CompiledTerm, Fault, fault, operation
from headrace.plan.expressions.terms import Apply, Term

# The mean radius of the earth.
RADIUS_KM = 6371.0088
# Up to here two places are one: rounding puts 180 degrees east and west, or two longitudes of a pole, a few picometers apart.
_SAME_KM = 1e-9
_HOUR = 3_600_000_000
_DOUBLE = pl.Float64()
Numbers = npt.NDArray[np.floating]


@operation("haversine_km")
def distance(term: Apply, parts: tuple[CompiledTerm, ...]) -> tuple[pl.Expr, Sequence[Fault]]:
    """The great-circle distance of two places in kilometers."""
    values = [part.value for part in parts]
    return over_numbers(great_circle_km, *values, dtype=_DOUBLE), _outside(term, values[0::2], values[1::2])


@operation("speed_kmh")
def speed(term: Apply, parts: tuple[CompiledTerm, ...]) -> tuple[pl.Expr, Sequence[Fault]]:
    """The distance of two places over the time between them. At one moment it is 0 at one place and infinite at two."""
    latitude, longitude, at, other_latitude, other_longitude, later = (part.value for part in parts)
    hours = (later.cast(pl.Int64) - at.cast(pl.Int64)).abs() / _HOUR
    value = over_numbers(_kmh, latitude, longitude, other_latitude, other_longitude, hours, dtype=_DOUBLE)
    return value, _outside(term, [latitude, other_latitude], [longitude, other_longitude])


@operation("h3_cell")
def cell(term: Apply, parts: tuple[CompiledTerm, ...]) -> tuple[pl.Expr, Sequence[Fault]]:
    """The cell of H3 that a place is in, as its usual text."""
    resolution = term.options[0]
    assert isinstance(resolution, int)

    def run(series: Sequence[pl.Series]) -> pl.Series:
        from h3 import latlng_to_cell

        height = max(len(one) for one in series)
        # A constant arrives as a single value.
        values = [one.to_list() * (height // len(one) if len(one) else 0) for one in series]
        found = [latlng_to_cell(*pair, resolution) if _there(*pair) else None for pair in zip(*values, strict=True)]
        return pl.Series(series[0].name, found, dtype=pl.String)

    values = [part.value for part in parts]
    return pl.map_batches(values, run, return_dtype=pl.String(), is_elementwise=True), _outside(term, values[:1], values[1:])


def great_circle_km(latitude: Numbers, longitude: Numbers, other_latitude: Numbers, other_longitude: Numbers) -> Numbers:
    """The distance of places along a great circle, by the haversine formula."""
    first, second = np.radians(latitude), np.radians(other_latitude)
    across = np.sin((second - first) / 2) ** 2
    along = np.sin(np.radians(other_longitude - longitude) / 2) ** 2
    # Rounding may put the sum a little above one, for places that are opposite each other.
    share = np.minimum(across + np.cos(first) * np.cos(second) * along, 1.0)
    return np.asarray(2 * RADIUS_KM * np.arcsin(np.sqrt(share)))


def _kmh(latitude: Numbers, longitude: Numbers, other_latitude: Numbers, other_longitude: Numbers, hours: Numbers) -> Numbers:
    kilometers = great_circle_km(latitude, longitude, other_latitude, other_longitude)
    return np.where(hours > 0, kilometers / hours, np.where(kilometers > _SAME_KM, math.inf, 0.0))


def _outside(term: Term, latitudes: Sequence[pl.Expr], longitudes: Sequence[pl.Expr]) -> list[Fault]:
    """True for what is not a place: NaN is neither below nor above anything."""
    return [
        *(fault(~one.is_between(-90, 90), "a latitude that is not from -90 to 90", term) for one in latitudes),
        *(fault(~one.is_between(-180, 180), "a longitude that is not from -180 to 180", term) for one in longitudes),
    ]


def _there(latitude: float | None, longitude: float | None) -> bool:
    return latitude is not None and longitude is not None and abs(latitude) <= 90 and abs(longitude) <= 180
