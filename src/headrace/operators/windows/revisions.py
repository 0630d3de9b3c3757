"""Revisions of window results: the number of each correction and the kind of its pane, so that a retraction equals the row it retracts."""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from headrace.operators.contract import Exported, Size
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.key_join import key_join
from headrace.operators.state.chunks import Chunks
from headrace.operators.state.store import Store

# When a result was due, whether it was emitted before, the number of its newest pane, and the kind of the previous one.
AT, HAD, REVISION, WAS = "_at", "_had", "_revision", "_was"


class Revisions:
    """The corrections of one shard: only results that have a late pane are in it."""

    def __init__(self, by: Sequence[str]) -> None:
        self._place = [*by, AT]
        self._counts = Chunks("revision", AT, lambda frame: frame.group_by(self._place).agg(pl.col(REVISION).sum()))
        # The watermarks between which results were emitted because the stream was silent, as long as they may be corrected.
        self._idle: list[list[int]] = []

    @property
    def size(self) -> Size:
        return self._counts.size

    def manifest(self) -> str:
        return json.dumps([self._counts.manifest(), self._idle])

    def restore(self, manifest: str | None, store: Store) -> None:
        counts, self._idle = json.loads(manifest) if manifest else (None, [])
        self._counts.restore(counts, store)

    def export(self) -> Exported:
        return Exported(self._counts.export().frames, {"idle": self._idle})

    def absorb(self, moved: Exported, store: Store) -> None:
        self._idle = moved.common.get("idle", [])
        self._counts.absorb(moved, store)

    def numbered(self, corrected: pl.DataFrame) -> pl.DataFrame:
        """Number the new panes of results, of which `_had` says whether they already have one; the first has the number zero."""
        low, high = corrected.select_seq(low=pl.col(AT).min(), high=pl.col(AT).max()).row(0)
        known = self._counts.between(low, high + 1)
        if known is None:
            known = corrected.select_seq(*self._place, pl.lit(0, pl.Int32).alias(REVISION)).clear()
        found = key_join(corrected, known, self._place, "left", nulls_equal=True)
        silent = pl.any_horizontal(pl.lit(False), *((pl.col(AT) > after) & (pl.col(AT) <= upto) for after, upto in self._idle))
        first = pl.when(silent).then(pl.lit("idle")).otherwise(pl.lit("on-time"))
        was = pl.when(pl.col(REVISION).is_not_null()).then(pl.lit("late")).otherwise(first)
        step = pl.col(HAD).cast(pl.Int32)
        self._counts.add(found.select_seq(*self._place, step.alias(REVISION)))
        return found.with_columns_seq(was.alias(WAS), pl.col(REVISION).fill_null(0) + step)

    def save(self, limit: int, time: EpochTime, store: Store) -> None:
        """End an epoch: drop results that were due before `limit`."""
        idle = [*self._idle, [time.before, time.after]] if time.idle else self._idle
        self._idle = [fired for fired in idle if fired[1] >= limit]
        self._counts.save(limit, store)
