"""The Gregorian calendar over the whole range of Spark's dates, which is wider than polars'.

The calendar repeats every 400 years, so a day's fields are those of the same day in the cycle that begins in 1970.
"""

from __future__ import annotations

import polars as pl

from headrace.operators.expressions.kernels import staged

CYCLE = 146_097
MICROSECONDS_A_DAY = 86_400_000_000


def day_number(moment: pl.Expr) -> pl.Expr:
    """The days since 1970 of a timestamp, as Int64."""
    return moment.cast(pl.Int64).floordiv(MICROSECONDS_A_DAY)


def in_cycle(days: pl.Expr) -> pl.Expr:
    """The same day of the calendar between 1970 and 2369."""
    return (days - days.floordiv(CYCLE) * CYCLE).cast(pl.Int32).cast(pl.Date)


def year(days: pl.Expr) -> pl.Expr:
    return in_cycle(days).dt.year().cast(pl.Int64) + days.floordiv(CYCLE) * 400


def moved_in_cycle(days: pl.Expr, moved: pl.Expr) -> pl.Expr:
    """A day found in the cycle, moved back to the cycle of `days`."""
    return moved.cast(pl.Int64) + days.floordiv(CYCLE) * CYCLE


def days_from_civil(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    """Days since 1970 of a year, month and day, all Int64; a day beyond its month continues into the next."""
    shifted = pl.when(month <= 2).then(year - 1).otherwise(year)
    era = shifted.floordiv(400)
    year_of_era = shifted - era * 400
    month_from_march = month + pl.when(month > 2).then(-3).otherwise(9)
    day_of_year = (153 * month_from_march + 2).floordiv(5) + day - 1
    day_of_era = year_of_era * 365 + year_of_era.floordiv(4) - year_of_era.floordiv(100) + day_of_year
    return era * CYCLE + day_of_era - 719_468


def days_in_month(year: pl.Expr, month: pl.Expr) -> pl.Expr:
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    short = month.is_in([4, 6, 9, 11])
    return pl.when(month == 2).then(pl.when(leap).then(29).otherwise(28)).when(short).then(30).otherwise(31).cast(pl.Int64)


def add_months(days: pl.Expr, months: pl.Expr) -> pl.Expr:
    """Days since 1970 after a number of months, on the last day of a month that is shorter."""
    return staged(_add_months, days, months, dtype=pl.Int64())


def _add_months(frame: pl.LazyFrame) -> pl.LazyFrame:
    days, total, to_year, to_month = (pl.col(name) for name in ("a", "total", "year", "month"))
    frame = frame.with_columns_seq(in_cycle(days).alias("in_cycle"))
    frame = frame.with_columns_seq((year(days) * 12 + pl.col("in_cycle").dt.month().cast(pl.Int64) - 1 + pl.col("b")).alias("total"))
    frame = frame.with_columns_seq(total.floordiv(12).alias("year"))
    frame = frame.with_columns_seq((total - to_year * 12 + 1).alias("month"))
    day = pl.min_horizontal(pl.col("in_cycle").dt.day().cast(pl.Int64), days_in_month(to_year, to_month))
    return frame.with_columns_seq(day.alias("day")).with_columns_seq(days_from_civil(to_year, to_month, pl.col("day")).alias("value"))
