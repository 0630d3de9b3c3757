"""Session windows: stretches of activity of one key, merged when records or late records bring them closer than the gap.

A session begins with its first record and ends `gap` after its last. Merging is decided over all sessions of the keys that an
epoch touches; a merged session replaces its parts, and what was given out of them before is retracted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.aggregate import Aggregate
from headrace.operators.aggregates import accumulators, finishes, merged, partial
from headrace.operators.changes import TIME, added, retracted
from headrace.operators.contract import START, STOP, Arrived, Entered, Outcome, Size
from headrace.operators.keyed import GONE, KeyedState
from headrace.operators.store import Store
from headrace.operators.time import EpochTime
from headrace.operators.windowing import Contents, windowed
from headrace.plan.windows import Session

_GROUP, _OLD, _NEW, _FIRED, _REVISION = "_group", "_old", "_new", "_fired", "_revision"
_DUE, _SESSIONS, _NUMBER, _SUSPECT = "_due", "_sessions", "_number", "_suspect"


@dataclass(frozen=True)
class SessionSpec:
    """Sessions with a `gap`, kept for corrections until `until` after their end; in microseconds. `by` has at least one column."""

    gap: int
    by: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    until: int = 0

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Records as small sessions."""
        doubtful = records.select(self.is_suspect(time).alias("doubtful")).get_column("doubtful")
        suspects = None
        if doubtful.any():
            suspects, records = records.filter(doubtful), records.filter(~doubtful)
        bounded = records.with_columns(pl.col(TIME).alias(START), (pl.col(TIME) + self.gap).alias(STOP))
        bounds = {START: pl.col(START).min(), STOP: pl.col(STOP).max()}
        small = partial(_grouped(bounded, self.by), (*self.by, _GROUP), self.aggregates, bounds).drop(_GROUP)
        return Entered(small, records.height, suspects=suspects)

    def is_suspect(self, time: EpochTime) -> pl.Expr:
        """Whether a record is late unless it joins a session that is still kept; only the state can tell."""
        return pl.col(TIME) + self.gap + self.until <= time.before

    def closing(self, moment: int) -> int:
        return moment + self.gap

    def fresh(self, shard: int) -> Sessions:
        return Sessions(self)


class Sessions:
    """The sessions of one shard."""

    def __init__(self, spec: SessionSpec) -> None:
        self._spec = spec
        self._state = KeyedState("session", spec.by)
        self._parts = [START, STOP, *accumulators(spec.aggregates), _FIRED, _REVISION]

    @property
    def size(self) -> Size:
        return self._state.size

    def manifest(self) -> str:
        return json.dumps(self._state.manifest())

    def restore(self, manifest: str | None, store: Store) -> None:
        self._state.restore(json.loads(manifest) if manifest else None, store)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Take in small sessions and records that may be late; give the changelog of results, and the records that are late."""
        doubtful = pl.concat(arrived.suspects).with_row_index(_NUMBER) if arrived.suspects else None
        fresh = [frame.with_columns(pl.lit(None, pl.List(pl.UInt32)).alias(_SUSPECT)) for frame in arrived.rows]
        if doubtful is not None:
            fresh.append(self._small(doubtful))
        old = self._touched(fresh, time)
        merged = self._merge(fresh, old)
        if merged is None:
            return Outcome()
        late = self._late(merged, doubtful, time)
        merged = merged.filter((pl.col(_OLD) > 0) | (pl.col(STOP) + self._spec.until > time.before))
        results = self._results(merged, old, time)
        self._keep(merged, old, time, store)
        count, lost = 0 if doubtful is None else doubtful.height, 0 if late is None else late.height
        return Outcome(results, late, {"taken": count, "out": count - lost, "late": lost} if count else {})

    def _small(self, doubtful: pl.DataFrame) -> pl.DataFrame:
        """Each doubtful record as a session of its own that remembers which it is."""
        single = doubtful.with_columns(pl.col(TIME).alias(START), (pl.col(TIME) + self._spec.gap).alias(STOP))
        extra = {STOP: pl.col(STOP).max(), _SUSPECT: pl.col(_NUMBER)}
        return partial(single, (*self._spec.by, START), self._spec.aggregates, extra)

    def _touched(self, fresh: list[pl.DataFrame], time: EpochTime) -> pl.DataFrame | None:
        """The kept sessions of all keys that got records or have something due, one a row."""
        due = self._state.where(pl.col(_DUE) <= time.after)
        found = None
        if fresh:
            keys = pl.concat([frame.select(self._spec.by) for frame in fresh]).unique()
            found = self._state.find(keys)
        parts = [part for part in (due, found) if part is not None]
        if not parts:
            return None
        rows = pl.concat(parts).unique(subset=list(self._spec.by), maintain_order=True)
        return rows.select(*self._spec.by, _SESSIONS).explode(_SESSIONS).unnest(_SESSIONS)

    def _merge(self, fresh: list[pl.DataFrame], old: pl.DataFrame | None) -> pl.DataFrame | None:
        columns = [*self._spec.by, *self._parts, _OLD, _NEW, _SUSPECT]
        nothing = pl.lit(None, pl.List(pl.UInt32)).alias(_SUSPECT)
        parts = [
            frame.with_columns(
                pl.lit(False).alias(_FIRED), pl.lit(0, pl.Int32).alias(_REVISION), pl.lit(0).alias(_OLD), pl.lit(1).alias(_NEW)
            )
            for frame in fresh
        ]
        if old is not None:
            parts.append(old.with_columns(pl.lit(1).alias(_OLD), pl.lit(0).alias(_NEW), nothing))
        if not parts:
            return None
        grouped = _grouped(pl.concat([part.select(columns) for part in parts]), self._spec.by)
        extra = {
            START: pl.col(START).min(),
            STOP: pl.col(STOP).max(),
            _FIRED: pl.col(_FIRED).any(),
            _REVISION: pl.col(_REVISION).max(),
            _OLD: pl.col(_OLD).sum(),
            _NEW: pl.col(_NEW).sum(),
            _SUSPECT: pl.col(_SUSPECT).explode().drop_nulls(),
        }
        return merged(grouped, (*self._spec.by, _GROUP), self._spec.aggregates, extra).drop(_GROUP)

    def _late(self, merged: pl.DataFrame, doubtful: pl.DataFrame | None, time: EpochTime) -> pl.DataFrame | None:
        """The doubtful records that joined no kept session."""
        if doubtful is None:
            return None
        lost = merged.filter((pl.col(_OLD) == 0) & (pl.col(STOP) + self._spec.until <= time.before))
        numbers = lost.select(_SUSPECT, START, STOP).explode(_SUSPECT).drop_nulls(_SUSPECT)
        late = doubtful.join(numbers, left_on=_NUMBER, right_on=_SUSPECT, how="inner", maintain_order="left").drop(_NUMBER)
        return None if late.is_empty() else late

    def _results(self, merged: pl.DataFrame, old: pl.DataFrame | None, time: EpochTime) -> list[pl.DataFrame]:
        changed = (pl.col(_NEW) > 0) | (pl.col(_OLD) > 1)
        results = []
        if old is not None:
            replaced = merged.filter(changed & pl.col(_FIRED)).select(
                *self._spec.by, pl.col(START).alias("_from"), pl.col(STOP).alias("_to")
            )
            given_out = old.filter(pl.col(_FIRED))
            if not replaced.is_empty() and not given_out.is_empty():
                gone = _inside(given_out, replaced, self._spec.by).with_columns(pl.col(_REVISION) - 1)
                results.append(retracted(self._finish(gone, pl.lit("late"))))
        kind = pl.when(pl.col(STOP) <= time.before).then(pl.lit("late")).otherwise(pl.lit("idle" if time.idle else "on-time"))
        firing = merged.filter((pl.col(STOP) <= time.after) & (changed | ~pl.col(_FIRED)))
        if not firing.is_empty():
            results.append(added(self._finish(firing, kind)))
        return results

    def _keep(self, merged: pl.DataFrame, old: pl.DataFrame | None, time: EpochTime, store: Store) -> None:
        """Write the sessions of the touched keys that may still change; a key without any is gone."""
        # A fired session that records extended beyond the watermark fires again when that passes its new end.
        fired = pl.col(STOP) <= time.after
        again = fired & ((pl.col(_NEW) > 0) | (pl.col(_OLD) > 1) | ~pl.col(_FIRED))
        kept = merged.filter(pl.col(STOP) + self._spec.until > time.after).with_columns(
            (pl.col(_REVISION) + again.cast(pl.Int32)).alias(_REVISION), fired.alias(_FIRED)
        )
        due = pl.when(pl.col(_FIRED)).then(pl.col(STOP) + self._spec.until).otherwise(pl.col(STOP))
        rows = (
            kept.with_columns(due.alias(_DUE))
            .group_by(self._spec.by)
            .agg(pl.col(_DUE).min(), pl.struct(self._parts).alias(_SESSIONS), pl.lit(False).first().alias(GONE))
        )
        if old is not None:
            without = old.select(self._spec.by).unique().join(kept, on=list(self._spec.by), how="anti", nulls_equal=True)
            if not without.is_empty():
                marks = without.with_columns(
                    pl.lit(None, rows.schema[_DUE]).alias(_DUE),
                    pl.lit(None, rows.schema[_SESSIONS]).alias(_SESSIONS),
                    pl.lit(True).alias(GONE),
                )
                rows = pl.concat([rows, marks.select(rows.columns)])
        self._state.put(rows, store)

    def _finish(self, sessions: pl.DataFrame, kind: pl.Expr) -> pl.DataFrame:
        return sessions.select(
            *self._spec.by,
            pl.col(START).cast(pl.Datetime("us", "UTC")).alias("window_start"),
            pl.col(STOP).cast(pl.Datetime("us", "UTC")).alias("window_end"),
            *finishes(self._spec.aggregates),
            kind.alias("pane"),
            pl.col(_REVISION).cast(pl.Int32).alias("revision"),
            (pl.col(STOP) - 1).alias(TIME),
        )


def _grouped(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Number the sessions of each key: a new one begins where nothing before it reaches."""
    ordered = frame.sort(*by, START, nulls_last=True)
    reach = pl.col(STOP).cum_max().shift(1)
    begins = (pl.col(START) >= reach.over(by)).fill_null(True)
    return ordered.with_columns(begins.cum_sum().over(by).alias(_GROUP))


def _inside(sessions: pl.DataFrame, replaced: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The sessions that lie inside one of the replaced stretches of their key."""
    pairs = sessions.join(replaced, on=list(by), how="inner", nulls_equal=True)
    return pairs.filter((pl.col(START) >= pl.col("_from")) & (pl.col(STOP) <= pl.col("_to"))).drop("_from", "_to")


@windowed.register
def _(window: Session, contents: Contents) -> SessionSpec:
    return SessionSpec(microseconds(window.gap), contents.by, contents.aggregates, contents.until)
