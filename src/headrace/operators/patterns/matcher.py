"""The search of every key for its matches, one after the other: by the automaton where that can tell, by trying where not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.operators.patterns.automaton import END, Automaton, Successor, automaton_of
from headrace.operators.patterns.backtracking import WHERE, Backtracking, SearchTask, steps_of
from headrace.operators.patterns.lockstep import Lockstep, SearchStarts
from headrace.operators.patterns.rows import Paths, SearchCursors, SearchRows
from headrace.operators.patterns.searches import Searches
from headrace.operators.patterns.single_key import Alone, Steps
from headrace.operators.patterns.values import Evaluator, Sights
from headrace.plan.patterns.match import NEXT_ROW, PAST_LAST, TO_FIRST, After, Pattern

# The state of a search that is made by trying.
TRYING = -1
_NONE = np.empty(0, np.int64)
# The number of matches of one key that are found before `where` judges them.
_AT_ONCE = 256


@dataclass(frozen=True)
class Matches:
    """Matches with their keys and the moments at which each was certain; those of a key in their order.

    `failed` are searches that could not be made: key, moment and reason.
    """

    keys: np.ndarray
    paths: Paths
    moments: np.ndarray
    failed: Sequence[tuple[int, int, str]] = ()


class Matcher:
    """Finds the matches of a pattern."""

    def __init__(self, pattern: Pattern, after: After, within: int) -> None:
        self.automaton: Automaton = automaton_of(pattern)
        self.searches = Searches(self.automaton)
        self.variables = np.array([place.variable for place in self.automaton.places], np.int64)
        self._fixed, self._within, self._after = pattern.fixed, within, after
        names = self.automaton.variables
        self._target = -1 if after.variable is None else names.index(after.variable)
        self._conditions = {names.index(name): Evaluator(one, names) for name, one in pattern.define if not one.fixed}
        self._where = None if pattern.where is None else Evaluator(pattern.where, names)
        if self._where is not None:
            self._conditions[WHERE] = self._where
        self._masks = (self._mask(self.automaton.begin), self._mask(self.automaton.begin_anchored))

    def run(self, rows: SearchRows, cursors: SearchCursors, fresh: tuple[np.ndarray, np.ndarray], after: int) -> Matches:
        """Let open searches go on, and begin those of the `fresh` keys at their rows or behind; rows before `after` are known."""
        restarts = SearchStarts(rows, cursors, self._masks, self._within)
        keys = np.concatenate([np.flatnonzero(cursors.start >= 0), restarts.at(*fresh)])
        work = _Work(rows, cursors, restarts, after, [], [])
        lockstep = Lockstep(self.searches, rows, cursors, after) if self._fixed else None
        trying = Backtracking(self.automaton, self._conditions, rows, after)
        while len(keys):
            tried, again = keys, list[np.ndarray]()
            if lockstep is not None:
                by_trying = cursors.state[keys] == TRYING
                doubtful, again = self._by_automaton(lockstep, keys[~by_trying], work)
                tried = np.concatenate([keys[by_trying], *doubtful])
            keys = np.concatenate([*again, *self._by_trying(trying, tried, work)])
        return _in_order(work)

    def _by_automaton(self, lockstep: Lockstep, keys: np.ndarray, work: _Work) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Find matches; the keys whose search has to be made by trying, and those that have another one."""
        ended = lockstep.run(keys, work.restarts)
        paths, traced = lockstep.traced(ended.keys, ended.threads)
        found, moments = ended.keys[traced], ended.moments[traced]
        accepted = self._accepted(paths, work.rows)
        sure, paths = found[accepted], paths.chosen(accepted)
        lockstep.decide(sure, moments[accepted])
        work.found.append((sure, paths, work.cursors.decided[sure]))
        again = work.restarts.at(sure, self._next_rows(paths, work.cursors.start[sure]))
        rejected, more = self._one_by_one(ended.left, work)
        return [found[~accepted], ended.keys[~traced], ended.given_up, rejected], [again, more]

    def _one_by_one(self, keys: np.ndarray, work: _Work) -> tuple[np.ndarray, np.ndarray]:
        """Find matches of a few keys; those whose search has to be made by trying, and those that have another one."""
        alone = Alone(self.searches, work.rows, work.cursors, work.restarts, work.after)
        rejected, more = list[int](), list[int]()
        for key in keys.tolist():
            found, given_up = alone.run(key, _AT_ONCE, self._next_row)
            paths = Paths.of([one.path for one in found])
            accepted = self._accepted(paths, work.rows)
            held = len(found) if accepted.all() else int(np.argmin(accepted))
            moments = np.array([one.moment for one in found[:held]], np.int64)
            work.found.append((np.full(held, key), paths.chosen(np.arange(len(found)) < held), moments))
            if held < len(found):
                # All searches behind this one are made again.
                work.restarts.at(np.array([key]), np.array([found[held].start]))
                work.cursors.decided[key] = found[held].moment
                rejected.append(key)
            elif given_up:
                rejected.append(key)
            elif len(found) == _AT_ONCE and work.cursors.start[key] >= 0:
                more.append(key)
        return np.array(rejected, np.int64), np.array(more, np.int64)

    def _accepted(self, paths: Paths, rows: SearchRows) -> np.ndarray:
        """The paths for which `where` is true; one that cannot be told is not."""
        if self._where is None or not len(paths.sizes):
            return np.ones(len(paths.sizes), bool)
        value, fault = self._where.evaluate(rows.frame, self.sights(paths))
        held: np.ndarray = value.cast(pl.Boolean).fill_null(False).to_numpy()
        return held if fault is None else held & fault.is_null().to_numpy()

    def _by_trying(self, trying: Backtracking, keys: np.ndarray, work: _Work) -> list[np.ndarray]:
        """Find matches; the keys that have another search. Those that wait for more rows have none."""
        rows, cursors, starts = work.rows, work.cursors, work.cursors.start[keys]
        tasks = [
            SearchTask(start, end, limit, anchored)
            for start, end, limit, anchored in zip(
                starts.tolist(), rows.ends[keys].tolist(), cursors.limit[keys].tolist(), rows.anchored[starts].tolist(), strict=True
            )
        ]
        paths, ended, lost = list[list[tuple[int, int]]](), list[int](), list[int]()
        for key, tried in zip(keys.tolist(), trying.run(tasks), strict=True):
            cursors.state[key] = TRYING
            if tried.open:
                continue
            cursors.decided[key] = max(int(cursors.decided[key]), tried.moment)
            if tried.fault is not None:
                work.failed.append((key, int(cursors.decided[key]), tried.fault))
            if tried.path is None or tried.fault is not None:
                lost.append(key)
            else:
                ended.append(key)
                paths.append(steps_of(tried.path))
        sure, found, without = np.array(ended, np.int64), Paths.of(paths), np.array(lost, np.int64)
        work.found.append((sure, found, cursors.decided[sure]))
        again = work.restarts.at(sure, self._next_rows(found, cursors.start[sure]))
        return [again, work.restarts.at(without, cursors.start[without] + 1)]

    def sights(self, paths: Paths, numbers: np.ndarray = _NONE) -> Sights:
        """What formulas see of complete matches."""
        return Sights(len(paths.sizes), paths.owners, paths.rows, self.variables[paths.places], paths.last, numbers)

    def _next_row(self, path: Steps, start: int) -> int:
        """`_next_rows` for one path."""
        if self._target >= 0:
            return int(self._next_rows(Paths.of([path]), np.array([start]))[0])
        return start + 1 if self._after.kind == NEXT_ROW else path[-1][0] + 1

    def _next_rows(self, paths: Paths, starts: np.ndarray) -> np.ndarray:
        """The row at which the next search of each key begins; where it would be the same row again, the next one."""
        if self._after.kind == NEXT_ROW or not len(starts):
            return starts + 1
        if self._after.kind == PAST_LAST:
            return paths.last + 1
        own = self.variables[paths.places] == self._target
        owners, taken = paths.owners[own], paths.rows[own]
        found = starts.copy()
        # Of several the one that is written last stays.
        order = slice(None, None, -1) if self._after.kind == TO_FIRST else slice(None)
        found[owners[order]] = taken[order]
        return np.asarray(np.maximum(found, starts + 1))

    def _mask(self, begin: Sequence[Successor]) -> int:
        """The bits of the conditions that the first row of a match may fulfill."""
        numbers = {self.automaton.places[one.place].variable for one in begin if one.place != END}
        return sum(1 << number for number in numbers)


@dataclass(frozen=True)
class _Work:
    """The rows and searches of an epoch, and what was found so far: keys, paths and moments."""

    rows: SearchRows
    cursors: SearchCursors
    restarts: SearchStarts
    after: int
    found: list[tuple[np.ndarray, Paths, np.ndarray]]
    failed: list[tuple[int, int, str]]


def _in_order(work: _Work) -> Matches:
    """The matches of each key one behind the other."""
    if not work.found:
        return Matches(_NONE, Paths.of([]), _NONE, work.failed)
    keys, moments = (np.concatenate([part[place] for part in work.found]) for place in (0, 2))
    paths = Paths.joined([part[1] for part in work.found])
    order = np.argsort(keys, kind="stable")
    begins = np.cumsum(paths.sizes) - paths.sizes
    sizes = paths.sizes[order]
    inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(begins[order], sizes)
    return Matches(keys[order], Paths(paths.rows[inside], paths.places[inside], sizes), moments[order], work.failed)
