"""Text read as numbers, booleans, dates and timestamps: what Spark accepts, and nothing else."""

from __future__ import annotations

import unicodedata

import numpy as np
import polars as pl
import pyarrow as pa

from headrace.operators.expressions.dtypes import dtype
from headrace.operators.expressions.kernels import staged
from headrace.operators.expressions.numbers import decimals
from headrace.operators.expressions.parts import Made, fault
from headrace.operators.expressions.times import moments
from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import BINARY, BOOLEAN, DATE
from headrace.plan.expressions.moments import TRIMMED
from headrace.plan.expressions.syntax.nodes import Kind
from headrace.plan.expressions.terms import Apply

_TRUE, _FALSE = ["t", "true", "y", "yes", "1"], ["f", "false", "n", "no", "0"]
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_HEX = r"^[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?$"
_DECIMAL = r"^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$"
_DIGITS = {chr(code): str(unicodedata.digit(chr(code))) for code in range(0x80, 0xFFFF) if unicodedata.category(chr(code)) == "Nd"}
_INT = 2**31 - 1
_BLANKS = "".join(map(chr, range(0x21)))


def read(term: Apply, text: pl.Expr, target: Kind) -> pl.Expr | Made:
    """The cast of text to `target`, with a fault for every text that is not one."""
    if target == BINARY:
        return text.cast(pl.Binary)
    if isinstance(target, pa.Decimal128Type):
        value = decimal(text, target)
    elif target == BOOLEAN:
        value = _boolean(text)
    elif kinds.floating(target):
        value = _floating(text, target)
    elif kinds.integer(target):
        value = _whole(text, target)
    elif target == DATE:
        value = moments.date(text)
    else:
        value = moments.timestamp(text)
    return value, [fault(value.is_null() & text.is_not_null(), f"text that is not {_article(target)}", term)]


def _article(target: Kind) -> str:
    name = kinds.named(target)
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _whole(text: pl.Expr, target: Kind) -> pl.Expr:
    return text.str.strip_chars(TRIMMED).cast(dtype(target), strict=False)


def _boolean(text: pl.Expr) -> pl.Expr:
    word = text.str.strip_chars(TRIMMED).str.to_lowercase()
    return pl.when(word.is_in(_TRUE)).then(True).when(word.is_in(_FALSE)).then(False).otherwise(None)


def _floating(text: pl.Expr, target: Kind) -> pl.Expr:
    """Java's literals with their d and f, infinity and NaN whatever their case, and hexadecimal floats."""

    def kernel(frame: pl.LazyFrame) -> pl.LazyFrame:
        bare, digits, word = pl.col("a"), pl.col("a").str.replace(r"[dDfF]$", ""), pl.col("word")
        frame = frame.with_columns_seq(bare.str.strip_chars(_BLANKS))
        read = pl.when(digits.str.contains(_NUMBER)).then(digits).cast(dtype(target), strict=False)
        frame = frame.with_columns_seq(read.alias("read"), bare.str.to_lowercase().str.replace(r"^\+(inf)", "${1}").alias("word"))
        special = (
            pl.when(word.is_in(["inf", "infinity"])).then(float("inf"))
            .when(word.is_in(["-inf", "-infinity"])).then(float("-inf"))
            .when(word.is_in(["nan", "+nan", "-nan"]) & (bare.str.contains("NaN") | (word == "nan"))).then(float("nan"))
            .otherwise(bare.map_batches(_hexadecimal, return_dtype=pl.Float64, is_elementwise=True))
        )  # fmt: skip
        return frame.with_columns_seq(pl.coalesce("read", special.cast(dtype(target))).alias("value"))

    return staged(kernel, text, dtype=dtype(target))


def _hexadecimal(text: pl.Series) -> pl.Series:
    """Hexadecimal floats, which hardly any column has: only those rows are examined one by one."""
    rows = text.str.contains(_HEX).fill_null(False)
    values = np.full(len(text), np.nan)
    if rows.any():
        values[rows.to_numpy()] = [float.fromhex(one.rstrip("dDfF") if "p" in one.lower() else one) for one in text.filter(rows)]
    return pl.select(pl.when(rows).then(pl.Series(values))).to_series().alias(text.name)


def decimal(text: pl.Expr, target: pa.Decimal128Type) -> pl.Expr:
    """Digits rounded half up to the scale; null for text that is not a number and for numbers too large."""

    def kernel(frame: pl.LazyFrame) -> pl.LazyFrame:
        bare = pl.col("a").map_batches(_ascii_digits, return_dtype=pl.String, is_elementwise=True).str.strip_chars(_BLANKS)
        groups = pl.when(bare.str.contains(_NUMBER)).then(bare).str.extract_groups(_DECIMAL)
        frame = (
            frame.select_seq(groups.alias("read"))
            .unnest("read")
            .with_columns_seq(pl.col("2", "3").fill_null(""), pl.col("4").fill_null("0"))
        )
        digits, power = pl.col("digits"), pl.col("4").str.strip_prefix("+").cast(pl.Int64, strict=False)
        frame = frame.with_columns_seq(pl.concat_str("2", "3").str.strip_chars_start("0").alias("digits"), power.alias("power"))
        # `keep` digits precede the end of the scale; the next one decides the rounding.
        length, after = digits.str.len_chars().cast(pl.Int64), pl.col("3").str.len_chars().cast(pl.Int64)
        scale = after - pl.col("power")
        real = pl.col("power").is_between(-_INT, _INT) & scale.is_between(-_INT, _INT)
        frame = frame.with_columns_seq(length.alias("length"), pl.when(real).then(length - scale + target.scale).alias("keep"))
        return _fitted(frame, target)

    return staged(kernel, text, dtype=dtype(target))


def _ascii_digits(text: pl.Series) -> pl.Series:
    """Java reads the digits of every script in a decimal, and only there."""
    if not text.str.contains(r"[^\x00-\x7f]").any():
        return text
    return text.str.replace_many(list(_DIGITS), list(_DIGITS.values()))


def _fitted(frame: pl.LazyFrame, target: pa.Decimal128Type) -> pl.LazyFrame:
    digits, keep, length = pl.col("digits"), pl.col("keep"), pl.col("length")
    zeros = pl.lit("0" * 39).str.slice(0, (keep - length).clip(0, 39))
    kept = pl.concat_str([pl.lit("0"), digits.str.slice(0, keep.clip(0, 39)), zeros])
    fits = keep.is_not_null() & pl.col("1").is_not_null() & ((keep <= target.precision) | (length == 0))
    frame = frame.with_columns_seq(pl.when(fits).then(kept).cast(pl.Int128, strict=False).alias("number"))
    rounds = (keep >= 0) & (digits.str.slice(keep.clip(0), 1) >= "5")
    frame = frame.with_columns_seq((pl.col("number") + rounds.cast(pl.Int128)).alias("number"))
    sign = pl.when(pl.col("1") == "-").then(decimals.number(-1)).otherwise(decimals.number(1))
    return frame.with_columns_seq(decimals.fitted(pl.col("number") * sign, target)[0].alias("value"))
