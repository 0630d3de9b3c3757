"""Session windows: stretches of activity of one key, merged when records or late records bring them closer than the gap.

A session begins with its first record and ends `gap` after its last. Merging is decided over all sessions of the keys that an epoch
touches; a merged session replaces its parts, and their emitted panes are retracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.aggregates.partials import partial
from headrace.operators.changes import TIME
from headrace.operators.contract import START, STOP, Arrived, Entered, Outcome
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.keyed import GONE, KeyedState
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store
from headrace.operators.windows.emission import BOOK, DUE, FRESH, LAST, NEWS, WITH_NEWS, Emission
from headrace.operators.windows.registry import windowed
from headrace.plan.windows.kinds import Session

_GROUP, _OLD, _SESSIONS, _NUMBER, _SUSPECT = "_group", "_old", "_sessions", "_number", "_suspect"


@dataclass(frozen=True)
class SessionSpec:
    """Sessions with a `gap` in microseconds, and their emission."""

    gap: int
    emission: Emission

    @property
    def by(self) -> tuple[str, ...]:
        return self.emission.by

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Records as small sessions."""
        doubtful = records.select_seq(self.is_suspect(time).alias("doubtful")).get_column("doubtful")
        suspects = None
        if doubtful.any():
            suspects, records = records.filter(doubtful), records.filter(~doubtful)
        grouped = _grouped(self.bounded(records), self.by)
        small = partial(grouped, (*self.by, _GROUP), self.emission.aggregates, _EXTENT).drop(_GROUP)
        return Entered(small, records.height, suspects=suspects)

    def bounded(self, records: pl.DataFrame) -> pl.DataFrame:
        """Each record as a session of its own."""
        return records.with_columns_seq(pl.col(TIME).alias(START), (pl.col(TIME) + self.gap).alias(STOP))

    def is_suspect(self, time: EpochTime) -> pl.Expr:
        """Whether a record is late unless it joins a session that is still kept; only the state can tell."""
        return pl.col(TIME) + self.gap + self.emission.until <= time.before

    def closing(self, moment: int) -> int:
        return moment + self.gap

    def fresh(self) -> Sessions:
        return Sessions(self)


class Sessions(OneState[KeyedState]):
    """The sessions of one shard: a row for each key, with all its sessions that may still change."""

    def __init__(self, spec: SessionSpec) -> None:
        super().__init__(KeyedState("session", spec.by, due=pl.col(DUE), news=WITH_NEWS))
        self._spec, self._emission = spec, replace(spec.emission, grows=True)
        self._by = list(spec.by)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Merge small sessions and records that may be late; returns the changelog of results, and the late records."""
        doubtful = pl.concat(arrived.suspects).with_row_index(_NUMBER) if arrived.suspects else None
        fresh = [self._opened(frame, pl.lit([], pl.List(pl.UInt32))) for frame in arrived.rows]
        if doubtful is not None:
            extent = _EXTENT | {_SUSPECT: pl.col(_NUMBER)}
            single = partial(self._spec.bounded(doubtful), (*self._by, TIME), self._emission.aggregates, extent)
            fresh.append(self._opened(single, pl.col(_SUSPECT)))
        old = self._touched(fresh, time)
        parts = fresh if old is None else [*fresh, old]
        if not parts:
            return Outcome()
        grouped = _grouped(pl.concat(parts), self._by)
        lost = self._lost(grouped, time) if doubtful is not None else None
        if lost is not None:
            grouped = grouped.join(lost, on=[*self._by, _GROUP], how="anti", nulls_equal=True)
        results, kept = self._emission.emitted(self._emission.merged(grouped, self._by, _GROUP), time)
        self._keep(kept, old, store)
        return self._outcome(results, lost, doubtful)

    def _opened(self, small: pl.DataFrame, suspects: pl.Expr) -> pl.DataFrame:
        marked = small.with_columns_seq(pl.lit(False).alias(_OLD), suspects.alias(_SUSPECT))
        return self._emission.opened(marked, _OLD, _SUSPECT)

    def _touched(self, fresh: list[pl.DataFrame], time: EpochTime) -> pl.DataFrame | None:
        """The kept sessions of all keys that have new records, or sessions that are due or may fire, one in each row."""
        found = [self._state.reached("due", time.after)]
        if self._emission.looks_at_all(time):
            found.append(self._state.reached("news", NEWS))
        if fresh:
            found.append(self._state.find(pl.concat([frame.select_seq(self._by) for frame in fresh]).unique()))
        rows = [part for part in found if part is not None]
        if not rows:
            return None
        keys = pl.concat(rows).unique(subset=self._by, maintain_order=True)
        sessions = keys.select_seq(*self._by, _SESSIONS).explode(_SESSIONS).unnest(_SESSIONS).select_seq(self._emission.columns)
        return sessions.with_columns_seq(pl.lit(True).alias(_OLD), pl.lit([], pl.List(pl.UInt32)).alias(_SUSPECT))

    def _lost(self, grouped: pl.DataFrame, time: EpochTime) -> pl.DataFrame | None:
        """The suspect records that joined no kept session, as sessions of their own."""
        numbers = pl.col(_SUSPECT).explode(keep_nulls=False, empty_as_null=False)
        merged = grouped.group_by(*self._by, _GROUP).agg(pl.col(_OLD).any(), pl.col(START).min(), pl.col(STOP).max(), numbers)
        lost = merged.filter(~pl.col(_OLD) & (pl.col(STOP) + self._emission.until <= time.before))
        return None if lost.is_empty() else lost

    def _outcome(self, results: list[pl.DataFrame], lost: pl.DataFrame | None, doubtful: pl.DataFrame | None) -> Outcome:
        if doubtful is None:
            return Outcome(results)
        late = None
        if lost is not None:
            numbers = lost.select_seq(pl.col(_SUSPECT).alias(_NUMBER), START, STOP).explode(_NUMBER)
            late = doubtful.join(numbers, on=_NUMBER, how="inner", maintain_order="left").drop(_NUMBER)
        count = 0 if late is None else late.height
        return Outcome(results, late, {"taken": doubtful.height, "out": doubtful.height - count, "late": count})

    def _keep(self, kept: pl.DataFrame, old: pl.DataFrame | None, store: Store) -> None:
        """Write the sessions of the touched keys that may still change; a key without any is removed."""
        parts = [*BOOK, *self._emission.contents]
        rows = kept.group_by(self._by).agg(
            pl.col(DUE).min(), pl.struct(parts).alias(_SESSIONS), pl.lit(False).first().alias(GONE), pl.col(FRESH).sum()
        )
        if old is not None:
            without = old.select_seq(self._by).unique().join(kept, on=self._by, how="anti", nulls_equal=True)
            nothing = [pl.lit(None, rows.schema[name]).alias(name) for name in (DUE, _SESSIONS, FRESH)]
            rows = pl.concat([rows, without.with_columns_seq(*nothing, pl.lit(True).alias(GONE)).select_seq(rows.columns)])
        self._state.put(rows, store)


# More than there are moments.
_STRETCH = 2**64
_EXTENT = {START: pl.col(START).min(), STOP: pl.col(STOP).max(), FRESH: pl.len().cast(pl.Int64), LAST: pl.col(TIME).max()}


def _grouped(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Number the sessions: a new one begins with a new key, and where no earlier one reaches."""
    ordered = frame.sort(*by, START, nulls_last=True)
    other = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in by)
    # Each key has a range of numbers of its own, so that one pass over all of them finds how far each reaches, without groups.
    floor = other.cast(pl.Int128).cum_sum() * pl.lit(_STRETCH, pl.Int128)
    reach = (floor + pl.col(STOP)).cum_max().shift(1)
    begins = (floor + pl.col(START) >= reach).fill_null(True)
    return ordered.with_columns_seq(begins.cum_sum().alias(_GROUP))


@windowed.register
def _(window: Session, emission: Emission) -> SessionSpec:
    return SessionSpec(microseconds(window.gap), emission)
