"""Dates and timestamps as text, in Spark's form.

A batch has few distinct days and a day few seconds, so each is written once and looked up.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from headrace.operators.expressions.kernels import staged
from headrace.operators.expressions.parts import CompiledTerm, operation
from headrace.operators.expressions.times import calendar
from headrace.operators.expressions.times.calendar import MICROSECONDS_A_DAY
from headrace.plan.expressions.terms import Apply


def date_text(value: pl.Expr) -> pl.Expr:
    """`2024-02-29`; a year above 9999 or below 0 has its sign."""

    def kernel(frame: pl.LazyFrame) -> pl.LazyFrame:
        return _days(frame.collect(engine="in-memory").to_series()).alias("value").to_frame().lazy()

    return staged(kernel, value.cast(pl.Int64), dtype=pl.String())


def timestamp_text(value: pl.Expr) -> pl.Expr:
    """`2024-02-29 12:34:56.789`, without trailing zeros in the fraction."""

    def kernel(frame: pl.LazyFrame) -> pl.LazyFrame:
        micros = frame.collect(engine="in-memory").to_series()
        days = micros // MICROSECONDS_A_DAY
        of_day = micros - days * MICROSECONDS_A_DAY
        parts = [_days(days), pl.lit(" "), _clock().gather((of_day // 1_000_000).cast(pl.UInt32))]
        fraction = of_day % 1_000_000
        if (fraction != 0).any():
            parts.append(_fraction(fraction))
        return pl.select(pl.concat_str(parts).alias("value")).lazy()

    return staged(kernel, value.cast(pl.Int64), dtype=pl.String())


def _days(days: pl.Series) -> pl.Series:
    different = days.unique().drop_nulls()
    texts = pl.select(pl.concat_str([_year(pl.lit(different)), calendar.in_cycle(pl.lit(different)).dt.to_string("-%m-%d")])).to_series()
    return days.replace_strict(different, texts, default=None, return_dtype=pl.String)


def _year(days: pl.Expr) -> pl.Expr:
    number = calendar.year(days)
    sign = pl.when(number > 9999).then(pl.lit("+")).when(number < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    return pl.concat_str([sign, number.abs().cast(pl.String).str.zfill(4)])


@cache
def _clock() -> pl.Series:
    """The text of every second of a day."""
    return pl.Series([f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}" for second in range(86_400)])


def _fraction(micros: pl.Series) -> pl.Series:
    different = micros.unique().drop_nulls()
    digits = different.cast(pl.String).str.zfill(6).str.strip_chars_end("0")
    texts = pl.select(pl.when(pl.lit(different) == 0).then(pl.lit("")).otherwise(pl.lit(".") + pl.lit(digits))).to_series()
    return micros.replace_strict(different, texts, default=None, return_dtype=pl.String)


@operation("date_format")
def date_format(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    """The parts of a format, joined; a part that begins with a quote is plain text."""
    formats = [str(option) for option in term.options]

    def kernel(frame: pl.LazyFrame) -> pl.LazyFrame:
        micros = frame.collect(engine="in-memory").to_series()
        days = micros // MICROSECONDS_A_DAY
        of_day = micros - days * MICROSECONDS_A_DAY
        texts = [pl.lit(part[1:]) if part[0] == "'" else pl.lit(_formatted(part, days, of_day)) for part in formats]
        value = pl.concat_str(texts) if texts else pl.lit("")
        return pl.select(pl.when(pl.lit(micros).is_not_null()).then(value).alias("value")).lazy()

    return staged(kernel, parts[0].value.cast(pl.Int64), dtype=pl.String())


def _formatted(part: str, days: pl.Series, of_day: pl.Series) -> pl.Series:
    if part == "yyyy":
        return pl.select(_year(pl.lit(days))).to_series()
    if part[0] == "S":
        fraction: pl.Series = of_day % 1_000_000 // 10 ** (6 - len(part))
        return fraction.cast(pl.String).str.zfill(len(part))
    if part in ("MM", "dd"):
        date = pl.select(calendar.in_cycle(pl.lit(days))).to_series().dt
        return _two_digits().gather((date.month() if part == "MM" else date.day()).cast(pl.UInt32))
    unit, most = {"HH": (3_600_000_000, 24), "mm": (60_000_000, 60), "ss": (1_000_000, 60)}[part]
    return _two_digits().gather((of_day // unit % most).cast(pl.UInt32))


@cache
def _two_digits() -> pl.Series:
    return pl.Series([f"{number:02}" for number in range(100)])
