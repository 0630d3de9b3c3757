"""Rows that are retracted and added again as they were: neither is emitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from headrace.operators.changes import TIME
from headrace.operators.key_join import key_join
from headrace.operators.nulls import same_values

_GONE, _OTHER = "_gone", "_other"


class Changed(NamedTuple):
    """The rows that are retracted and those that are added, without those that are the same in both."""

    gone: pl.DataFrame
    come: pl.DataFrame
    retimed: bool = False
    """Whether some rows differ from what they were in nothing but their time."""


def without_unchanged(gone: pl.DataFrame, come: pl.DataFrame, identity: Sequence[str]) -> Changed:
    """Rows that are retracted and rows that are added, at most one of an identity in each, without those that come back as they were.

    >>> before = pl.DataFrame({"k": [1, 2, 3], "n": [[5], [6], [None]], TIME: [10, 10, 10]})
    >>> after = pl.DataFrame({"k": [3, 2, 1], "n": [[None], [7], [5]], TIME: [11, 11, 10]})
    >>> gone, come, retimed = without_unchanged(before, after, ["k"])
    >>> gone.rows(), come.rows(), retimed
    ([(2, [6], 10), (3, [None], 10)], [(3, [None], 11), (2, [7], 11)], True)
    """
    if gone.is_empty() or come.is_empty():
        return Changed(gone, come)
    names = list(identity)
    found = key_join(gone[names].with_row_index(_GONE), come[names].with_row_index(_OTHER), names, nulls_equal=True)
    one, two = found.get_column(_GONE).to_numpy(), found.get_column(_OTHER).to_numpy()
    before, after = gone[one], come[two]
    alike = np.ones(len(one), dtype=bool)
    for name in gone.columns:
        if name != TIME:
            alike &= same_values(before.get_column(name), after.get_column(name))
    same = alike & same_values(before.get_column(TIME), after.get_column(TIME))
    return Changed(_without(gone, one[same]), _without(come, two[same]), bool((alike & ~same).any()))


def _without(rows: pl.DataFrame, places: np.ndarray) -> pl.DataFrame:
    if not len(places):
        return rows
    keep = np.ones(rows.height, dtype=bool)
    keep[places] = False
    return rows.filter(pl.Series(keep))
