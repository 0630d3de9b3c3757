"""The join of two streams within a time: each side is kept as long as the other may bring a match.

Pairs are emitted as soon as both rows are there. A row that waits, because it may stay without a match or one of its matches is picked, is
looked up once more when the watermark proves that no match can come.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.aggregates.partials import FAULT
from headrace.operators.changes import TIME, added
from headrace.operators.contract import Arrived, Made, Outcome, Port, operator_of, without_result
from headrace.operators.event_time.arrival_order import contents_of
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.expressions import compile as compiled_form
from headrace.operators.joins.entrances import TimedRecords
from headrace.operators.joins.pairing import Pairing
from headrace.operators.state.persistent import SeveralStates
from headrace.operators.state.row_lookup import TimeSpan
from headrace.operators.state.store import Store
from headrace.operators.state.timed_rows import TimedRows
from headrace.plan.expressions import Typed
from headrace.plan.joins.interval import ALL_MATCHES, LAST, IntervalJoin
from headrace.plan.joins.join import LEFT, RIGHT

_PLACE, _RIGHT_TIME = "_place", "_at"


@dataclass(frozen=True)
class SideReach:
    """One side: how far before and after its own time a row matches, and how far behind the watermark it may come, in microseconds.

    `waits`: its rows are looked up again when no match can come any more.
    """

    before: int
    after: int
    lateness: int
    waits: bool

    def settled_after(self, other: SideReach) -> int:
        """How long after its time no row of the other side that matches can come."""
        return self.after + other.lateness

    def kept(self, other: SideReach) -> int:
        """How long after its time a row may be asked for."""
        return max(self.settled_after(other), self.after + other.settled_after(self) if other.waits else 0)

    def span(self, rows: pl.DataFrame) -> TimeSpan:
        """The times of the other side that match each row."""
        times = rows.get_column(TIME).to_numpy()
        return TimeSpan(times - self.before, times + self.after)


@dataclass(frozen=True)
class IntervalJoinSpec:
    """Pairs of rows of two streams within their reach. `pick` is for waiting left rows; `condition` is over a result."""

    pairing: Pairing
    left: SideReach
    right: SideReach
    keeps_left: bool
    pick: str
    condition: Typed | None = None

    def closing(self, moment: int) -> int:
        """The end of the last wait for a match that a moment begins."""
        waits = [reach.settled_after(other) + 1 for reach, other in ((self.left, self.right), (self.right, self.left)) if reach.waits]
        return moment + max(waits, default=0)

    def fresh(self) -> IntervalJoined:
        return IntervalJoined(self)


class IntervalJoined(SeveralStates):
    """The rows of both sides of one shard."""

    def __init__(self, spec: IntervalJoinSpec) -> None:
        self._spec, self._pairing = spec, spec.pairing
        self._left, self._right = TimedRows("left", spec.pairing.on), TimedRows("right", spec.pairing.on)
        self._condition = None if spec.condition is None else compiled_form(spec.condition)
        super().__init__(self._left, self._right)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        spec = self._spec
        left = self._pairing.left_rows(arrived.at(LEFT))
        right = self._pairing.right_rows(arrived.at(RIGHT))
        came = left.height + right.height
        left, right = self._matchable(left, spec.keeps_left), self._matchable(right, spec.right.waits)
        filtered = came - left.height - right.height
        left_due = self._due(self._left, left, spec.left, spec.left.settled_after(spec.right), time)
        right_due = self._due(self._right, right, spec.right, spec.right.settled_after(spec.left), time)
        self._right.add(right)
        results, failed = [], []
        if spec.pick == ALL_MATCHES:
            for pairs in (self._matches(left), self._matches_of_right(right)):
                met, bad = self._met(pairs)
                results += [] if met is None else [met]
                failed += bad
        self._left.add(left)
        settled, bad = self._settled(left_due)
        # Where pairs went out at once, what failed then has gone out, too.
        failed += bad if spec.pick != ALL_MATCHES else []
        results += settled + self._settled_right(right_due)
        self._left.save(time.after - spec.left.kept(spec.right), store)
        self._right.save(time.after - spec.right.kept(spec.left), store)
        shown = [added(part.select_seq(*self._pairing.columns, TIME)) for part in results if part.height]
        return Outcome([*shown, *failed], counts=without_result(filtered))

    def _matchable(self, rows: pl.DataFrame, kept: bool) -> pl.DataFrame:
        """Rows that can be in a result: those without a key only where rows without a match are."""
        return rows if kept or rows.is_empty() else rows.filter(self._pairing.keyed())

    def _due(self, state: TimedRows, came: pl.DataFrame, reach: SideReach, settled: int, time: EpochTime) -> pl.DataFrame | None:
        """The rows for which no match can come any more, of those that wait: kept ones, and those that came that late."""
        if not reach.waits:
            return None
        known = state.between(time.before - settled, time.after - settled)
        if came.is_empty():
            return known
        late = came.filter(pl.col(TIME) < time.after - settled)
        return late if known is None else pl.concat([known, late])

    def _matches(self, left: pl.DataFrame) -> pl.DataFrame | None:
        """The pairs of left rows with all right rows that are here; `_place` is the place of the left one."""
        found = self._right.find(left, self._spec.left.span(left))
        if found is None:
            return None
        pairs = self._pairing.pairs(left[found.places], found.rows)
        return pairs.with_columns_seq(pl.Series(_PLACE, found.places), found.rows.get_column(TIME).alias(_RIGHT_TIME))

    def _matches_of_right(self, right: pl.DataFrame) -> pl.DataFrame | None:
        found = self._left.find(right, self._spec.right.span(right))
        if found is None:
            return None
        return self._pairing.pairs(found.rows, right[found.places]).with_columns_seq(pl.Series(_PLACE, found.places))

    def _met(self, pairs: pl.DataFrame | None) -> tuple[pl.DataFrame | None, list[pl.DataFrame]]:
        """The pairs for which the condition is true, and those for which it cannot be computed."""
        if pairs is None or self._condition is None:
            return pairs, []
        error = pl.lit(None, pl.String) if self._condition.error is None else self._condition.error
        judged = pairs.with_columns_seq(self._condition.value.alias("_true"), error.alias(FAULT))
        bad = judged.filter(pl.col(FAULT).is_not_null())
        met = judged.filter(pl.col("_true").fill_null(False) & pl.col(FAULT).is_null()).drop("_true", FAULT)
        return met, [added(bad.select_seq(*self._pairing.columns, TIME, FAULT))] if bad.height else []

    def _settled(self, due: pl.DataFrame | None) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
        """What left rows are in the end, the match that was picked or none, and the pairs whose condition cannot be computed."""
        if due is None or due.is_empty():
            return [], []
        met, bad = self._met(self._matches(due))
        results = [self._picked(met)] if self._spec.pick != ALL_MATCHES and met is not None and met.height else []
        if self._spec.keeps_left:
            results.append(self._pairing.left_alone(_unmatched(due, met)))
        return results, bad

    def _settled_right(self, due: pl.DataFrame | None) -> list[pl.DataFrame]:
        if due is None or due.is_empty():
            return []
        met, _ = self._met(self._matches_of_right(due))
        return [self._pairing.right_alone(_unmatched(due, met))]

    def _picked(self, met: pl.DataFrame) -> pl.DataFrame:
        """Of the pairs of each left row that with the first or last right time; of equal times their contents decide."""
        last = self._spec.pick == LAST
        contents = contents_of(self._pairing.columns).alias("_contents")
        ordered = met.with_columns_seq(contents).sort(_PLACE, _RIGHT_TIME, "_contents", descending=[False, last, last])
        return ordered.unique(subset=[_PLACE], keep="first", maintain_order=True)


def _unmatched(rows: pl.DataFrame, met: pl.DataFrame | None) -> pl.DataFrame:
    """The rows that are in no pair."""
    if met is None or met.is_empty():
        return rows
    alone = np.ones(rows.height, dtype=bool)
    alone[met.get_column(_PLACE).to_numpy()] = False
    return rows.filter(alone)


@operator_of.register
def _(node: IntervalJoin) -> Made:
    sides, before, after = node.sides, microseconds(node.before), microseconds(node.after)
    left = SideReach(before, after, microseconds(sides.left.lateness), node.left_waits)
    right = SideReach(after, before, microseconds(sides.right.lateness), sides.keeps_right)
    spec = IntervalJoinSpec(Pairing.of(sides), left, right, sides.keeps_left, node.pick, node.condition)
    ports = {
        LEFT: Port(TimedRecords(sides.left_on, tuple(sides.left.columns.names), left.lateness)),
        RIGHT: Port(TimedRecords(sides.right_on, tuple(sides.right.columns.names), right.lateness)),
    }
    return Made(spec, ports)
