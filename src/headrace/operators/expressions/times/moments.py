"""Dates and timestamps read from text, in any form that Spark's casts accept."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl

from headrace.operators.expressions.dtypes import MOMENT
from headrace.operators.expressions.kernels import staged
from headrace.operators.expressions.times import calendar, iso
from headrace.operators.expressions.times.calendar import MICROSECONDS_A_DAY
from headrace.operators.expressions.times.zones import in_region, place
from headrace.plan.expressions.moments import DATE_PATTERN, TIMESTAMP_PATTERN, TRIMMED

_SECOND = 1_000_000


def _ascii(pattern: str) -> str:
    """The pattern in Rust's syntax: digits are ASCII, the dot also matches line ends."""
    return "(?s)" + pattern.replace(r"\d", "[0-9]")


def date(text: pl.Expr) -> pl.Expr:
    """The date, or null where the text is none."""
    return staged(_dates, text, dtype=pl.Date())


def _dates(frame: pl.LazyFrame) -> pl.LazyFrame:
    groups = pl.col("a").str.strip_chars(TRIMMED).str.extract_groups(_ascii(DATE_PATTERN))
    frame = _days(frame.select_seq(groups.alias("groups")).unnest("groups"))
    return frame.with_columns_seq(pl.col("days").cast(pl.Int32, strict=False).cast(pl.Date).alias("value"))


def _days(frame: pl.LazyFrame) -> pl.LazyFrame:
    """`days` since 1970 from the columns 1 (sign), 2 (year), 3 and 4 (month and day); null where there is no such day."""
    year = pl.col("2").cast(pl.Int64, strict=False)
    frame = frame.with_columns_seq(
        pl.when(pl.col("1") == "-").then(-year).otherwise(year).alias("year"),
        *(pl.col(place).fill_null("1").cast(pl.Int64, strict=False).alias(name) for place, name in (("3", "month"), ("4", "day"))),
    )
    year, month, day = pl.col("year"), pl.col("month"), pl.col("day")
    real = month.is_between(1, 12) & (day >= 1) & (day <= calendar.days_in_month(year, month))
    return frame.with_columns_seq(pl.when(real).then(calendar.days_from_civil(year, month, day)).alias("days"))


def timestamp(text: pl.Expr) -> pl.Expr:
    """The moment, or null where the text is none; a time without a date is today's."""
    return staged(_timestamps, text, dtype=MOMENT)


def _timestamps(frame: pl.LazyFrame) -> pl.LazyFrame:
    text = frame.collect(engine="in-memory").to_series()
    moments, known = iso.read(text)
    value = pl.Series("value", moments)
    others = ~known & text.is_not_null().to_numpy()
    value = pl.select(pl.when(pl.Series(known)).then(value).alias("value")).to_series()
    if others.any():
        value = value.scatter(np.flatnonzero(others), _any_form(text.filter(pl.Series(others))))
    return value.cast(MOMENT).to_frame().lazy()


def _any_form(text: pl.Series) -> pl.Series:
    """Microseconds since 1970 of texts in any form, null where it is none."""
    bare = text.str.strip_chars(TRIMMED)
    timed = text.str.contains(r"^T[0-9]") | bare.str.contains(r"^[0-9]{1,2}:")
    if timed.any():
        today = datetime.now(UTC).strftime("%Y-%m-%dT")
        bare = pl.select(pl.when(timed).then(pl.lit(today) + bare.str.strip_prefix("T")).otherwise(bare)).to_series()
    read = _local(bare.alias("a").to_frame().lazy()).collect(engine="in-memory")
    moments = read["local"] if read["zone"].null_count() == len(text) else _zoned(read)
    return moments.cast(pl.Int64, strict=False)


def _local(frame: pl.LazyFrame) -> pl.LazyFrame:
    """`local`: microseconds since 1970 as shown by a clock without a zone, and the text of the `zone`."""
    frame = _days(frame.select_seq(pl.col("a").str.extract_groups(_ascii(TIMESTAMP_PATTERN)).alias("groups")).unnest("groups"))
    hour, minute, second = (pl.col(name).fill_null("0").cast(pl.Int64, strict=False) for name in "567")
    fraction = pl.concat_str([pl.col("8").fill_null(""), pl.lit("000000")]).str.slice(0, 6).cast(pl.Int64, strict=False)
    real = (hour <= 23) & (minute <= 59) & (second <= 59)
    of_day = ((hour * 60 + minute) * 60 + second) * _SECOND + fraction
    # A year of six digits can be beyond 64 bits, and its zone may bring it back into range.
    local = pl.when(real).then(pl.col("days").cast(pl.Int128) * MICROSECONDS_A_DAY + of_day)
    return frame.select_seq(local.alias("local"), pl.col("9").alias("zone"))


def _zoned(read: pl.DataFrame) -> pl.Series:
    """Local clocks moved by their zones: offsets by arithmetic, regions by the time zone table."""
    local = pl.col("local")
    places = {name: place(name.strip(TRIMMED)) for name in read["zone"].unique().drop_nulls()}
    offsets = {name: found * _SECOND for name, found in places.items() if isinstance(found, int)}
    offset = pl.col("zone").replace_strict(offsets, default=None, return_dtype=pl.Int64)
    moved = read.select_seq(pl.when(pl.col("zone").is_null()).then(local).otherwise(local - offset).alias("moment")).to_series()
    for name, found in places.items():
        if isinstance(found, str):
            rows = (read["zone"] == name).fill_null(False)
            clocks = read["local"].filter(rows).cast(pl.Int64, strict=False)
            moved = moved.scatter(rows.arg_true(), in_region(clocks, found).cast(pl.Int128))
    return moved
