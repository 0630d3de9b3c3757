"""The recent changes of a view, epoch by epoch, and their net effect since an epoch that a reader has seen."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from headrace.operators.key_join import key_join

# The operation of a change on the row of its key.
OPERATION = "_change"
INSERT, UPDATE, DELETE = "insert", "update", "delete"


@dataclass(frozen=True)
class ViewChanges:
    """The changes that take a view from epoch `after` to epoch `epoch`: at most one for each key."""

    after: int
    epoch: int
    frame: pl.DataFrame


class RecentChanges:
    """The last changes of a view, as many as fit into `rows` rows."""

    def __init__(self, key: Sequence[str], rows: int) -> None:
        self._key = list(key)
        self._limit = rows
        self._held: deque[ViewChanges] = deque()
        self._rows = 0

    def add(self, changes: ViewChanges) -> None:
        if self._held and not changes.frame.height and not self._held[-1].frame.height:
            # Epochs without a change count as one, however many they are.
            changes = ViewChanges(self._held.pop().after, changes.epoch, changes.frame)
        self._held.append(changes)
        self._rows += changes.frame.height
        while self._rows > self._limit and len(self._held) > 1:
            self._rows -= self._held.popleft().frame.height

    def clear(self) -> None:
        self._held.clear()
        self._rows = 0

    def since(self, epoch: int) -> ViewChanges | None:
        """The net changes since an epoch; None if some of them are no longer known, or only together with earlier ones.

        A reader may come from another server, which stopped at an epoch that this one passed over.
        """
        later = [changes for changes in self._held if changes.epoch > epoch]
        if not later or later[0].after > epoch or (later[0].after < epoch and later[0].frame.height):
            return None
        if len(later) == 1:
            return later[0]
        return ViewChanges(epoch, later[-1].epoch, net([changes.frame for changes in later], self._key))


def net(frames: Sequence[pl.DataFrame], key: Sequence[str]) -> pl.DataFrame:
    """Several changes of a key as one: inserted and deleted again is nothing, deleted and inserted again is an update."""
    together = pl.concat(frames)
    first = together.unique(subset=list(key), keep="first", maintain_order=True).select(*key, pl.col(OPERATION).alias("_first"))
    last = together.unique(subset=list(key), keep="last", maintain_order=True)
    joined = key_join(last, first, key, "left", nulls_equal=True)
    new = pl.col("_first") == INSERT
    gone = pl.col(OPERATION) == DELETE
    kept = joined.filter(~(new & gone))
    said = pl.when(gone).then(pl.lit(DELETE)).when(new).then(pl.lit(INSERT)).otherwise(pl.lit(UPDATE))
    return kept.with_columns(said.alias(OPERATION)).drop("_first")
