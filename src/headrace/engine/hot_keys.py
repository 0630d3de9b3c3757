"""Hot keys: keys with many of the records of a step, found by sampling while a job runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.schema.legible import key_text

COLUMNS = "epoch bigint, step string, key string, records bigint, gathers boolean"
# Once in this many epochs a batch is sampled, if it has enough records; this many are drawn.
_EVERY, _ENOUGH, _DRAWN = 8, 1_000, 512
# A key with less than this share is not hot; a step whose keys stay together is in trouble from the other share on.
_SHARE, _TOO_MUCH = 0.1, 0.5
# Older observations do not count.
_LAST = 64


@dataclass(frozen=True)
class HotKey:
    """A key with a large share of the records of a step. `gathers`: all of them go to one shard, one by one."""

    step: str
    key: str
    share: float
    gathers: bool

    @property
    def trouble(self) -> bool:
        return self.gathers and self.share > _TOO_MUCH

    def __str__(self) -> str:
        known = f"key {self.key} has {self.share:.0%} of the records of {self.step!r}"
        return f"{known}: they all go to one shard, so one core does its work" if self.trouble else known


def sampled_epochs(epoch: int) -> int:
    """The number of sampled epochs up to an epoch.

    >>> [sampled_epochs(epoch) for epoch in (0, 1, 8, 9)]
    [0, 1, 1, 2]
    """
    return (epoch + _EVERY - 1) // _EVERY


def sampled(records: pl.DataFrame, by: tuple[str, ...], epoch: int) -> pl.DataFrame | None:
    """The number of records of a batch that the hot keys have, by a sample, and all of them without a key; None if it is not sampled."""
    if epoch % _EVERY != 1 or records.height < _ENOUGH or not all(name in records.columns for name in by):
        return None
    drawn = records.select_seq(by)[np.random.default_rng(epoch).integers(0, records.height, _DRAWN)]
    counted = drawn.group_by(by).agg(pl.len().alias("_drawn")).filter(pl.col("_drawn") >= _SHARE * _DRAWN)
    return pl.DataFrame(
        {
            "epoch": pl.Series([epoch] * (counted.height + 1), dtype=pl.Int64),
            "key": [None, *key_text(counted, by)],
            "records": [records.height, *(counted.get_column("_drawn") * records.height // _DRAWN)],
        },
        schema_overrides={"key": pl.String, "records": pl.Int64},
    )


def hottest(seen: pl.DataFrame) -> list[HotKey]:
    """The hot keys of the last sampled epochs, those with the largest share first."""
    recent = seen.filter(pl.col("epoch") > pl.col("epoch").max() - _LAST)
    totals = recent.filter(pl.col("key").is_null()).group_by("step").agg(pl.col("records").sum().alias("all"))
    counted = recent.drop_nulls("key").group_by("step", "key").agg(pl.col("records").sum(), pl.col("gathers").last())
    shares = counted.join(totals, on="step").with_columns_seq((pl.col("records") / pl.col("all")).alias("share"))
    found = shares.filter(pl.col("share") >= _SHARE).sort("share", "step", "key", descending=[True, False, False])
    return [HotKey(**row) for row in found.select_seq("step", "key", "share", "gathers").to_dicts()]
