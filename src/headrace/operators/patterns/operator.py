"""Patterns by key: records wait for the watermark, searches go on with them, and rows that may be part of a match are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.changes import TIME, added
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of, single
from headrace.operators.event_time.arrival_order import contents_of, placed
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.event_time.late import in_time
from headrace.operators.expressions import REASON
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.frames import columns_of, rows_at, rows_where, without
from headrace.operators.key_join import key_join
from headrace.operators.nulls import filled, nulls_of
from headrace.operators.patterns.conditions import ANCHORED, BITS, KEY, Conditions
from headrace.operators.patterns.matcher import Matcher, Matches
from headrace.operators.patterns.results import MatchResults, Shown
from headrace.operators.patterns.rows import SearchCursors, SearchRows
from headrace.operators.patterns.serials import KEEP, SERIAL, Serials
from headrace.operators.state.chunks import Chunks
from headrace.operators.state.expiring import ExpiringState
from headrace.operators.state.found_rows import distinct_keys
from headrace.operators.state.persistent import SeveralStates
from headrace.operators.state.row_lookup import TimeSpan
from headrace.operators.state.store import Store
from headrace.operators.state.timed_rows import TimedRows
from headrace.plan.patterns.formulas import NUMBER
from headrace.plan.patterns.match import ALL, After, Match, Pattern

# Of a key: the first row of its open search, and the state of that; how many matches it had, and when the last one was certain; its last
# moment, and the one at which the search has to be decided.
FROM, STATE = "_match from", "_match state"
COUNT, COUNTED, TOUCHED, DUE = "_match count", "_match counted", "_match touched", "_match due"
# With more rows than this, those of a key are looked up.
_MANY = 20_000


@dataclass(frozen=True)
class MatchSpec:
    """A pattern over records by key, of which `columns` are needed; `lateness` is how far behind the watermark they may come."""

    by: tuple[str, ...]
    columns: tuple[str, ...]
    pattern: Pattern
    after: After
    shown: Shown
    lateness: int = 0
    order: tuple[str, ...] = ()

    @cached_property
    def conditions(self) -> Conditions:
        return Conditions(self.pattern)

    @property
    def within(self) -> int:
        return microseconds(self.pattern.within)

    @property
    def numbered(self) -> bool:
        return any(value.kind == NUMBER for _, formula in self.shown.measures for value in formula.values)

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Records with the conditions that are true for them. One behind the watermark is late: searches have passed it."""
        records, late = in_time(records, time.before - self.lateness)
        bits, reasons = self.conditions.of_row(records)
        bad = None
        if reasons is not None and reasons.null_count() < len(reasons):
            wrong = reasons.is_not_null()
            bad = records.filter(wrong).with_columns_seq(reasons.filter(wrong).alias(REASON))
            records, bits = records.filter(~wrong), bits.filter(~wrong)
        rows = placed(records.with_columns_seq(bits.alias(BITS)), (*self.columns, TIME, BITS))
        return Entered(rows, records.height, late, bad)

    def closing(self, moment: int) -> int:
        return moment + self.within + 1

    def fresh(self) -> Matching:
        return Matching(self)


class Matching(SeveralStates):
    """The records of one shard that wait for the watermark, the rows of open searches, and where each search is."""

    def __init__(self, spec: MatchSpec) -> None:
        self._spec, self._by, self._within = spec, list(spec.by), spec.within
        self._matcher = Matcher(spec.pattern, spec.after, spec.within)
        self._results = MatchResults(spec.shown, spec.by, self._matcher)
        self._waiting = Chunks("waiting", TIME, lambda frame: frame)
        self._kept = TimedRows("kept", spec.by)
        self._cursors = ExpiringState("cursor", spec.by, TOUCHED, spec.within + 1, due=pl.col(DUE))
        self._serials = Serials()
        super().__init__(self._waiting, self._kept, self._cursors, self._serials)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Continue searches with the records that the watermark has passed, and emit the matches that are certain."""
        before, after = time.before - self._spec.lateness, time.after - self._spec.lateness
        if arrived.rows:
            self._waiting.add(pl.concat(arrived.rows))
        released = self._waiting.between(before, after)
        self._waiting.save(after, store)
        due = self._cursors.reached("due", after)
        outcome = Outcome()
        if released is not None or due is not None:
            outcome = self._searched(released, due, after, store)
        self._kept.save(after - self._within, store)
        self._cursors.forget(after, store)
        return outcome

    def _searched(self, released: pl.DataFrame | None, due: pl.DataFrame | None, after: int, store: Store) -> Outcome:
        frame, known = self._gathered(released, due)
        serials = frame.get_column(SERIAL)
        fresh = nulls_of(serials)
        frame = frame.with_columns_seq(pl.Series(SERIAL, self._serials.given(filled(serials, 0), fresh)))
        frame, reasons = self._spec.conditions.over_rows(frame, fresh, self._within)
        rows = _rows(frame)
        known = known.of_numbers(frame.get_column(KEY).to_numpy()[rows.begins])
        cursors, old = self._opened(rows, known, fresh)
        idle = np.flatnonzero(cursors.start < 0)
        matches = self._matcher.run(rows, cursors, (idle, rows.begins[idle] + old[idle]), after)
        numbers, known = self._numbered(matches, known, rows.times)
        self._keep(rows, cursors, known, fresh, store)
        results = [self._results.of(matches, frame, numbers)] if len(matches.keys) else []
        results += [self._results.failed(matches, known.keys, frame)] if matches.failed else []
        bad = None
        if reasons is not None and reasons.null_count() < len(reasons):
            columns = (*self._spec.columns, PARTITION, OFFSET)
            bad = columns_of(frame, columns).with_columns_seq(reasons.alias(REASON)).filter(pl.col(REASON).is_not_null())
        return Outcome([added(result) for result in results], bad=bad)

    def _gathered(self, released: pl.DataFrame | None, due: pl.DataFrame | None) -> tuple[pl.DataFrame, _KnownKeys]:
        """The rows of all keys that have new ones or whose time has expired, by key and in their order; and what is known of these keys."""
        keys, numbers = distinct_keys(pl.concat([columns_of(frame, self._by) for frame in (released, due) if frame is not None]))
        known, found = _KnownKeys.unknown(keys), None
        if self._cursors.size.rows:
            located = self._cursors.locate(keys)
            found = located.found
        parts = []
        if found is not None:
            known.learn(located.places, found)
            mine = self._kept_of(found.hstack([pl.Series(KEY, located.places)]))
            parts += [] if mine is None else [mine]
        if released is not None:
            kinds = {SERIAL: pl.Int64(), **{value.placeholder: dtype(value.type) for value in self._spec.conditions.carried}}
            nothing = [pl.Series(name, [None], kind).new_from_index(0, released.height) for name, kind in kinds.items()]
            parts.append(released.hstack([*nothing, pl.Series(KEY, numbers[: released.height])]))
        frame = pl.concat([part[parts[-1].columns] for part in parts])
        return self._in_order(frame), known

    def _kept_of(self, known: pl.DataFrame) -> pl.DataFrame | None:
        """The rows that are kept for these keys, with their numbers. Nothing that is kept is from this epoch: that is added at its end."""
        # A lookup does not depend on the number of rows; with few, to look at all is quicker. Nulls are no key of a lookup.
        if self._kept.size.rows > _MANY and not any(known.get_column(name).null_count() for name in self._by):
            always = TimeSpan(np.full(known.height, -(2**61)), np.full(known.height, 2**61))
            found = self._kept.find(columns_of(known, self._by), always)
            if found is None:
                return None
            mine = found.rows.hstack([pl.Series(KEY, known.get_column(KEY).to_numpy()[found.places])])
            first = known.get_column(KEEP).to_numpy()[found.places]
        else:
            kept = self._kept.between(-(2**62), 2**62)
            if kept is None:
                return None
            mine = key_join(kept, columns_of(known, [*self._by, KEEP, KEY]), self._by, nulls_equal=True)
            first, mine = mine.get_column(KEEP).to_numpy(), columns_of(mine, [*kept.columns, KEY])
        needed = mine.get_column(SERIAL).to_numpy() >= first
        return rows_where(mine, needed)

    def _in_order(self, frame: pl.DataFrame) -> pl.DataFrame:
        """By key, time, the columns of `order`, partition and offset; where these do not tell, by contents."""
        ranks = [filled(frame.get_column(name).rank("dense"), 0) for name in reversed(self._spec.order)]
        places, moments = ([filled(frame.get_column(name), -1) for name in names] for names in ((OFFSET, PARTITION), (TIME, KEY)))
        columns = [*places, *ranks, *moments]
        order = np.lexsort(columns)
        tied = np.ones(max(len(order) - 1, 0), dtype=bool)
        for column in columns:
            ordered = column[order]
            tied &= ordered[1:] == ordered[:-1]
        if tied.any():
            contents = frame.select_seq(contents_of(self._spec.columns)).to_series()
            order = np.lexsort([contents.to_numpy(), *columns])
        return rows_at(frame, order)

    def _opened(self, rows: SearchRows, known: _KnownKeys, fresh: np.ndarray) -> tuple[SearchCursors, np.ndarray]:
        """The searches as they were, and how many rows of each key are not new."""
        cursors = SearchCursors.idle(len(rows.begins), -(2**62))
        old = np.add.reduceat((~fresh).astype(np.int64), rows.begins)
        passed = rows.frame.get_column(SERIAL).to_numpy() < np.repeat(known.start, rows.ends - rows.begins)
        opened = known.start >= 0
        first = rows.begins + np.add.reduceat(passed.astype(np.int64), rows.begins)
        cursors.start[opened] = first[opened]
        cursors.at[opened] = (rows.begins + old)[opened]
        cursors.state[opened] = self._matcher.searches.read(known.state[opened])
        cursors.limit[opened] = rows.times[first[opened]] + self._within
        return cursors, old

    def _numbered(self, matches: Matches, known: _KnownKeys, times: np.ndarray) -> tuple[np.ndarray, _KnownKeys]:
        """The numbers of matches among those of their key, and keys with their last ones.

        They restart at 1 with a match that begins more than `within` after the last one was certain.
        """
        numbers = np.ones(len(matches.keys), np.int64)
        if not self._spec.numbered:
            return numbers, known
        counts, moments = known.count.copy(), known.counted.copy()
        begins = times[matches.paths.first].tolist()
        for place, (key, begin, moment) in enumerate(zip(matches.keys.tolist(), begins, matches.moments.tolist(), strict=True)):
            counts[key] = numbers[place] = counts[key] + 1 if begin - moments[key] <= self._within else 1
            moments[key] = moment
        return numbers, replace(known, count=counts, counted=moments)

    def _keep(self, rows: SearchRows, cursors: SearchCursors, known: _KnownKeys, fresh: np.ndarray, store: Store) -> None:
        """Keep the rows of open searches and those that conditions of the next ones see, and where each search is."""
        opened, lookback = cursors.start >= 0, self._spec.conditions.lookback
        first = np.where(opened, cursors.start, rows.ends)
        first = np.maximum(np.minimum(first, rows.ends - lookback), rows.begins)
        serials = rows.frame.get_column(SERIAL).to_numpy()
        new = np.flatnonzero(fresh & (np.arange(len(serials)) >= np.repeat(first, rows.ends - rows.begins)))
        if len(new):
            self._kept.add(rows_at(without(rows.frame, KEY), new))
        last = len(serials) - 1
        wanted = opened | (lookback > 0)
        if self._spec.numbered:
            wanted = wanted | (known.count > 0)
        if not (wanted | known.stored).any():
            return
        closed = pl.Series(~opened)
        states = known.keys.hstack(
            [
                pl.Series(FROM, serials[np.minimum(cursors.start, last)]).set(closed, None),
                pl.Series(KEEP, np.where(first < rows.ends, serials[np.minimum(first, last)], self._serials.next)),
                self._matcher.searches.written(np.where(opened, cursors.state, -1)).alias(STATE),
                pl.Series(COUNT, known.count),
                pl.Series(COUNTED, known.counted),
                pl.Series(TOUCHED, np.maximum(rows.times[rows.ends - 1], known.counted)),
                pl.Series(DUE, cursors.limit + 1).set(closed, None),
            ]
        )
        self._cursors.change(rows_where(states, wanted), rows_where(states, ~wanted & known.stored), store)


@dataclass(frozen=True)
class _KnownKeys:
    """Keys, and what is known of each: whether it is stored, the first row of its open search (-1 without one) and the state of that, how
    many matches it had, and when the last one was certain."""

    keys: pl.DataFrame
    stored: np.ndarray
    start: np.ndarray
    state: np.ndarray
    count: np.ndarray
    counted: np.ndarray

    @classmethod
    def unknown(cls, keys: pl.DataFrame) -> _KnownKeys:
        """Keys that are new."""
        size = keys.height
        nothing = np.full(size, None, object)
        return cls(keys, np.zeros(size, bool), np.full(size, -1), nothing, np.zeros(size, np.int64), np.full(size, -(2**62)))

    def learn(self, places: np.ndarray, found: pl.DataFrame) -> None:
        """Add what is stored of the keys at some places."""
        self.stored[places] = True
        self.start[places] = filled(found.get_column(FROM), -1)
        self.state[places] = found.get_column(STATE).to_list()
        self.count[places] = found.get_column(COUNT).to_numpy()
        self.counted[places] = found.get_column(COUNTED).to_numpy()

    def of_numbers(self, numbers: np.ndarray) -> _KnownKeys:
        """Only the keys of these numbers, which ascend."""
        if len(numbers) == self.keys.height:
            return self
        parts = (self.stored, self.start, self.state, self.count, self.counted)
        return _KnownKeys(rows_at(self.keys, numbers), *(part[numbers] for part in parts))


def _rows(frame: pl.DataFrame) -> SearchRows:
    keys, bits = frame.get_column(KEY).to_numpy(), frame.get_column(BITS).to_numpy()
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return SearchRows(
        frame, frame.get_column(TIME).to_numpy(), bits & ~ANCHORED, bits & ANCHORED != 0, begins, np.append(begins[1:], len(keys))
    )


@operator_of.register
def _(node: Match) -> Made:
    shown = Shown(tuple(node.input.columns.names) if node.rows == ALL else node.by, node.measures, node.rows)
    return single(MatchSpec(node.by, node.kept, node.pattern, node.after, shown, microseconds(node.input.lateness), node.order))
