"""Clocks in time zones: conversion of local times in a region to UTC, by Java's time zone rules."""

from __future__ import annotations

from functools import cache

import polars as pl

from headrace.operators.expressions.times import calendar
from headrace.operators.expressions.times.calendar import MICROSECONDS_A_DAY
from headrace.plan.expressions.moments import days_from_civil, zone

# polars' table of transitions ends with the year 2099. Java continues with the last rules, which follow the calendar: a later year is
# looked up as the year before 2100 that begins on the same weekday and has the same length.
_LAST_YEARS = range(2072, 2100)
_END = (days_from_civil(2100, 1, 1) or 0) * MICROSECONDS_A_DAY
# Their clocks change by the Islamic calendar, which the rules list up to 2087 only.
_SETTLED = frozenset({"Africa/Casablanca", "Africa/El_Aaiun"})


@cache
def place(name: str) -> int | str | None:
    """Seconds east of UTC, or a region that the time zone table knows, or None."""
    found = zone(name)
    if not isinstance(found, str):
        return found
    try:
        _looked_up(pl.Series([0], dtype=pl.Int64), found)
    except pl.exceptions.ComputeError:
        return None
    return found


def in_region(local: pl.Series, region: str) -> pl.Series:
    """Microseconds in UTC of local clocks, both since 1970."""
    far = local >= _END
    if not far.any():
        return _looked_up(local, region)
    shift = pl.select(pl.when(far).then(_to_like_year(local, region)).otherwise(0)).to_series()
    return _looked_up(local + shift, region) - shift


def _to_like_year(local: pl.Series, region: str) -> pl.Series:
    """The distance from the start of the clock's own year to the start of a like year."""
    years = pl.select(calendar.year(pl.lit(local).floordiv(MICROSECONDS_A_DAY))).to_series()
    starts = {year: days_from_civil(year, 1, 1) or 0 for year in years.unique().drop_nulls()}
    like = {_shape(year): days_from_civil(year, 1, 1) or 0 for year in (_LAST_YEARS if region not in _SETTLED else range(2099, 2100))}
    anyway = next(iter(like.values()))
    shifts = {year: (like.get(_shape(year), anyway) - start) * MICROSECONDS_A_DAY for year, start in starts.items()}
    return years.replace_strict(shifts, return_dtype=pl.Int64)


def _shape(year: int) -> tuple[int, int]:
    """The weekday on which a year begins, and its length."""
    start, end = (days_from_civil(one, 1, 1) or 0 for one in (year, year + 1))
    return start % 7, end - start


def _looked_up(local: pl.Series, region: str) -> pl.Series:
    """An hour that occurs twice means the first one; a skipped hour moves on by the length of the gap."""
    known = local.cast(pl.Datetime("us")).dt.replace_time_zone(region, ambiguous="earliest", non_existent="null").cast(pl.Int64)
    if known.null_count() == local.null_count():
        return known
    day_before = local - MICROSECONDS_A_DAY
    before = day_before.cast(pl.Datetime("us")).dt.replace_time_zone(region, ambiguous="earliest", non_existent="null").cast(pl.Int64)
    return known.zip_with(known.is_not_null(), local - (day_before - before))
