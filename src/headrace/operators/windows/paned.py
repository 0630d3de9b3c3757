"""Tumbling and hopping windows over panes: each record is aggregated once, whatever the number of windows it is in.

Windows fire once when the watermark passes their end; with `until`, later records correct them.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators import changes
from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.aggregates.partials import ROWS, finishes, merged, partial, present
from headrace.operators.changes import TIME
from headrace.operators.contract import START, STOP, Arrived, Entered, Outcome, Spec
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.expressions.dtypes import MOMENT
from headrace.operators.key_join import key_join
from headrace.operators.state.chunks import Chunks
from headrace.operators.state.persistent import SeveralStates
from headrace.operators.state.store import Store
from headrace.operators.windows.emission import Emission
from headrace.operators.windows.intervals import IntervalSpec
from headrace.operators.windows.layouts import Regular
from headrace.operators.windows.panes import PANE, PaneTree, merge_keys
from headrace.operators.windows.registry import windowed
from headrace.operators.windows.revisions import AT, HAD, REVISION, WAS, Revisions
from headrace.plan.windows.kinds import Hopping

# A stretch of up to this many times the size of a window is examined as a whole.
_FAR = 64


@dataclass(frozen=True)
class WindowSpec:
    """Windows of `size` every `hop`, shifted by `offset`, kept for corrections until `until` after their end; in microseconds.

    `by` has at least one column.
    """

    size: int
    hop: int
    offset: int
    by: tuple[str, ...]
    aggregates: tuple[EvaluatedCall, ...]
    until: int = 0

    @property
    def layout(self) -> Regular:
        return Regular(self.size, self.hop, self.offset)

    @property
    def pane(self) -> int:
        return math.gcd(self.size, self.hop)

    def pane_of(self, time: pl.Expr) -> pl.Expr:
        return (time - self.offset).floordiv(self.pane) * self.pane + self.offset

    def last_end_of(self, time: pl.Expr) -> pl.Expr:
        """The end of the last window that contains a time; the time is late when that window is past `until`."""
        return (time - self.offset).floordiv(self.hop) * self.hop + self.offset + self.size

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Partial results of records by pane and key."""
        late = None
        # If the earliest record is not late, none is.
        if records.select_seq(pl.col(TIME).min()).select_seq(self.is_late(time)).item():
            is_late = records.select_seq(self.is_late(time).alias("late")).get_column("late")
            end = self.last_end_of(pl.col(TIME))
            late = records.filter(is_late).with_columns_seq((end - self.size).alias(START), end.alias(STOP))
            records = records.filter(~is_late)
        panes = records.with_columns_seq(self.pane_of(pl.col(TIME)).alias(PANE))
        missed = self.layout.partly_closed(records.get_column(TIME), time.before - self.until)
        return Entered(partial(panes, (PANE, *self.by), self.aggregates), records.height, late, partly_late=missed)

    def is_late(self, time: EpochTime) -> pl.Expr:
        """Whether every window of a record is past correction."""
        return self.last_end_of(pl.col(TIME)) + self.until <= time.before

    def closing(self, moment: int) -> int:
        return self.layout.closing(moment)

    def fresh(self) -> Windows:
        return Windows(self)


class Windows(SeveralStates):
    """The windows of one shard: merges partial results, and emits the results of windows that fire."""

    def __init__(self, spec: WindowSpec) -> None:
        self._spec = spec
        self._panes = Chunks("pane", PANE, self._merge_panes)
        self._tree = PaneTree(spec, self._panes)
        self._revisions = Revisions(spec.by)
        super().__init__(self._panes, self._revisions)

    def restore(self, manifest: str | None, store: Store) -> None:
        panes, revisions = json.loads(manifest) if manifest else (None, None)
        self._tree.invalidate(self._panes.restore(panes, store))
        self._revisions.restore(revisions, store)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Merge the partial results of an epoch: first correct windows that fired before, then fire those that the watermark has passed."""
        results = []
        if arrived.rows:
            panes = self._merge_panes(pl.concat(arrived.rows))
            corrected = self._corrected(panes.filter(pl.col(PANE) < time.before), time) if self._spec.until else {}
            before = {end: list(self._tree.windows([end], only=added)) for end, added in corrected.items()}
            self._panes.add(panes)
            self._tree.invalidate(panes.get_column(PANE).unique().to_list())
            for end, added in corrected.items():
                results += self._correct(end, added, before[end])
        results += self._fire(time)
        limit = time.after - self._spec.size - self._spec.until + 1
        self._panes.save(limit, store)
        self._tree.drop_before(limit)
        self._revisions.save(limit + self._spec.size, time, store)
        return Outcome(results)

    def _fire(self, time: EpochTime) -> list[pl.DataFrame]:
        spec = self._spec
        kind = pl.lit("idle" if time.idle else "on-time")
        if spec.size == spec.hop:
            found = self._panes.between(time.before - spec.size + 1, time.after - spec.size + 1)
            return [changes.added(self._finish(present(found), pl.col(PANE), kind, pl.lit(0)))] if found is not None else []
        windows = (window for ends in self._firing(time) for window in self._tree.windows(ends))
        return [changes.added(self._finish(present(window), pl.lit(end - spec.size), kind, pl.lit(0))) for end, window in windows]

    def _firing(self, time: EpochTime) -> list[list[int]]:
        """The ends of windows that the watermark has passed, by stretches of time that have records.

        A wrong time may be years away from the others, with very many windows without a record in between.
        """
        low, high = self._panes.span()
        low = max(low, time.before - self._spec.size)
        stretches = [(low, high)] if high - low < _FAR * self._spec.size else self._panes.stretches(low, self._spec.size)
        return [self._ends(time.before, time.after, stretch) for stretch in stretches]

    def _corrected(self, late: pl.DataFrame, time: EpochTime) -> dict[int, pl.DataFrame]:
        """The ends of windows that fired before and may be corrected, with the partial results of late records by key."""
        spec = self._spec
        panes = late.get_column(PANE).unique().to_list()
        low, high = self._panes.span()
        spread = (min([low, *panes]), max([high, *panes]))
        ends = {
            end
            for pane in panes
            for end in self._ends(max(pane, time.before - spec.until), min(pane + spec.size, time.before), spread)
        }  # fmt: skip
        inside = {end: late.filter((pl.col(PANE) >= end - spec.size) & (pl.col(PANE) < end)).drop(PANE) for end in sorted(ends)}
        return {end: merge_keys(spec, added) for end, added in inside.items()}

    def _correct(self, end: int, added: pl.DataFrame, before: list[tuple[int, pl.DataFrame]]) -> list[pl.DataFrame]:
        """The new results of a window's corrected keys, after the retraction of the old ones."""
        start = pl.lit(end - self._spec.size)
        ((_, window),) = self._tree.windows([end], only=added)
        revised = self._revise(window, added, end)
        results = []
        if before:
            numbers = revised.select_seq(*self._spec.by, (pl.col(REVISION) - 1).alias(REVISION), WAS)
            old = _matched(present(before[0][1]), numbers, list(self._spec.by))
            results.append(changes.retracted(self._finish(old, start, pl.col(WAS), pl.col(REVISION))))
        return [*results, changes.added(self._finish(present(revised), start, pl.lit("late"), pl.col(REVISION)))]

    def _revise(self, window: pl.DataFrame, added: pl.DataFrame, end: int) -> pl.DataFrame:
        """Number the corrections of a window."""
        by = list(self._spec.by)
        count = _matched(window, added.select_seq(*by, pl.col(ROWS).alias("_added")), by)
        return self._revisions.numbered(count.with_columns_seq(pl.lit(end).alias(AT), (pl.col(ROWS) > pl.col("_added")).alias(HAD)))

    def _ends(self, after: int, upto: int, panes: tuple[int, int]) -> list[int]:
        """The ends of windows in (after, upto] that can contain one of the panes from the lowest to the highest."""
        spec = self._spec
        low, high = panes
        first = max(after + 1, low + 1)
        first += (spec.offset + spec.size - first) % spec.hop
        return list(range(first, min(upto, high + spec.size) + 1, spec.hop))

    def _finish(self, window: pl.DataFrame, start: pl.Expr, kind: pl.Expr, revision: pl.Expr) -> pl.DataFrame:
        spec = self._spec
        end = start + spec.size
        return window.select_seq(
            *spec.by,
            start.cast(MOMENT).alias("window_start"),
            end.cast(MOMENT).alias("window_end"),
            *finishes(spec.aggregates),
            kind.alias("pane"),
            revision.cast(pl.Int32).alias("revision"),
            (end - 1).cast(pl.Int64).alias(TIME),
        )

    def _merge_panes(self, frame: pl.DataFrame) -> pl.DataFrame:
        return merged(frame, (PANE, *self._spec.by), self._spec.aggregates)


def _matched(left: pl.DataFrame, right: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """A left join on the key, where null equals null."""
    return key_join(left, right, by, "left", nulls_equal=True)


@windowed.register
def _(window: Hopping, emission: Emission) -> Spec:
    size, hop, offset = (microseconds(length) for length in (window.size, window.hop, window.offset))
    if emission.trigger.plain and window.in_panes:
        return WindowSpec(size, hop, offset, emission.by, emission.aggregates, emission.until)
    return IntervalSpec(Regular(size, hop, offset), emission)
