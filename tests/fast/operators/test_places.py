"""Distances, speeds and cells of places, against what is known of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from headrace.core.columns.schema import schema
from headrace.core.errors import PlanError
from headrace.operators.expressions import evaluate
from headrace.plan.expressions import check, parse

COLUMNS = schema("lat double, lon double, at timestamp, lat2 double, lon2 double, at2 timestamp")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def evaluated(text: str, **values: Any) -> tuple[Any, str | None]:
    row = {"lat": 0.0, "lon": 0.0, "at": NOON, "lat2": 0.0, "lon2": 0.0, "at2": NOON + timedelta(hours=1), **values}
    kinds = {"at": pl.Datetime("us", "UTC"), "at2": pl.Datetime("us", "UTC"), **dict.fromkeys(("lat", "lon", "lat2", "lon2"), pl.Float64)}
    good, bad = evaluate(pl.DataFrame([row], schema_overrides=kinds), {"x": check(parse(text), COLUMNS)})
    return (good.item(0, "x"), None) if good.height else (None, bad.item(0, "_reason"))


@pytest.mark.parametrize(
    ("places", "kilometers"),
    [
        ({}, 0.0),
        ({"lon2": 180.0}, 20015.1),  # half around the earth
        ({"lat": 90.0, "lat2": -90.0, "lon2": 77.0}, 20015.1),
        ({"lat": 48.8566, "lon": 2.3522, "lat2": 51.5074, "lon2": -0.1278}, 343.6),  # Paris, London
        ({"lat": 40.6413, "lon": -73.7781, "lat2": 35.7720, "lon2": 140.3929}, 10_834.0),  # New York, Tokyo by air
        ({"lon": 179.5, "lon2": -179.5}, 111.2),  # over the line where the date changes
    ],
)
def test_distances_are_those_along_a_great_circle(places: dict[str, float], kilometers: float) -> None:
    assert evaluated("haversine_km(lat, lon, lat2, lon2)", **places)[0] == pytest.approx(kilometers, abs=0.002 * kilometers + 0.1)
    assert evaluated("speed_kmh(lat, lon, at, lat2, lon2, at2)", **places)[0] == pytest.approx(kilometers, abs=0.002 * kilometers + 0.1)


def test_at_one_moment_a_speed_is_nothing_or_endless() -> None:
    assert evaluated("speed_kmh(lat, lon, at, lat2, lon2, at2)", at2=NOON) == (0.0, None)
    assert evaluated("speed_kmh(lat, lon, at, lat2, lon2, at2)", at2=NOON, lat2=1.0) == (float("inf"), None)
    assert evaluated("speed_kmh(lat, lon, at, lat2, lon2, at2)", at2=NOON - timedelta(hours=1), lon2=180.0)[0] > 20_000


@pytest.mark.parametrize(
    "places", [{"lon": 180.0, "lon2": -180.0}, {"lat": 90.0, "lat2": 90.0, "lon2": 180.0}, {"lat": -90.0, "lat2": -90.0, "lon2": 77.0}]
)
def test_one_place_with_two_longitudes_is_one_place(places: dict[str, float]) -> None:
    assert evaluated("speed_kmh(lat, lon, at, lat2, lon2, at2)", at2=NOON, **places) == (0.0, None)
    assert evaluated("haversine_km(lat, lon, lat2, lon2)", **places)[0] == pytest.approx(0.0, abs=1e-9)


def test_what_is_missing_is_null_and_what_is_no_place_is_a_fault() -> None:
    assert evaluated("haversine_km(lat, lon, lat2, lon2)", lat=None) == (None, None)
    assert evaluated("h3_cell(lat, lon, 5)", lon=None) == (None, None)
    assert "a latitude that is not from -90 to 90" in str(evaluated("haversine_km(lat, lon, lat2, lon2)", lat=90.5)[1])
    assert "a longitude that is not from -180 to 180" in str(evaluated("h3_cell(lat, lon, 5)", lon=float("nan"))[1])


def test_cells_are_those_of_h3() -> None:
    assert evaluated("h3_cell(lat, lon, 7)", lat=48.8566, lon=2.3522) == ("871fb4662ffffff", None)
    assert evaluated("h3_cell(48.8566, 2.3522, 7)") == ("871fb4662ffffff", None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sin(haversine_km(lat, lon, lat2, lon2))", "is a function of Headrace, and Spark must evaluate"),
        ("h3_cell(lat, lon, 16)", "a constant from 0 to 15"),
        ("haversine_km(lat, lon, lat2)", "takes 4 arguments, not 3"),
        ("haversine(lat, lon, lat2, lon2)", "did you mean 'haversine_km'?"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(text: str, said: str) -> None:
    with pytest.raises(PlanError) as refused:
        check(parse(text), COLUMNS)
    assert said in str(refused.value)
