"""The automaton over many keys at once: each step takes the next row of every search that goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.operators.patterns.rows import Paths, SearchCursors, SearchRows
from headrace.operators.patterns.searches import FAILED, FOUND, RUNNING, TOO_MANY, Searches

# So few searches are quicker one by one: a step over columns costs about as much as twenty rows.
FEW = 16


@dataclass(frozen=True)
class Ended:
    """Searches that came to a match: the keys, the thread that is the match, and when that was certain.

    `given_up` have too many states. `left` are the last few that still go on.
    """

    keys: np.ndarray
    threads: np.ndarray
    moments: np.ndarray
    given_up: np.ndarray
    left: np.ndarray


class Lockstep:
    """Runs searches through the rows that are known; all rows before the moment `after` are."""

    def __init__(self, searches: Searches, rows: SearchRows, cursors: SearchCursors, after: int) -> None:
        self._searches, self._rows, self._cursors, self._after = searches, rows, cursors, after
        self._letters = searches.letters(rows.bits)

    def run(self, keys: np.ndarray, restart: SearchStarts) -> Ended:
        """Let the searches of some keys go on until each has a match, needs rows that may still come, or has no rows left.

        When only a few are left they are better searched one by one.
        """
        found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        given_up = []
        cursors, searches = self._cursors, self._searches
        while len(keys) > FEW:
            more = self._has_row(keys)
            going, waiting = keys[more], keys[~more]
            rows = cursors.at[going]
            states = searches.step(cursors.state[going], self._letters[rows])
            cursors.state[going], cursors.at[going] = states, rows + 1
            kinds, moments = searches.kinds(states), self._rows.times[rows]
            over = waiting[cursors.limit[waiting] < self._after]
            threads = searches.at_end(cursors.state[over])
            hit, late = kinds == FOUND, threads >= 0
            if hit.any() or late.any():
                found.append((going[hit], np.zeros(hit.sum(), np.int64), moments[hit]))
                found.append((over[late], threads[late].astype(np.int64), cursors.limit[over[late]]))
            if (kinds == TOO_MANY).any():
                given_up.append(going[kinds == TOO_MANY])
            lost = np.concatenate([going[kinds == FAILED], over[~late]])
            ends = np.concatenate([moments[kinds == FAILED], cursors.limit[over[~late]]])
            self.decide(lost, ends)
            keys = np.concatenate([going[kinds == RUNNING], restart.at(lost, cursors.start[lost] + 1)])
        none = np.empty(0, np.int64)
        parts = [np.concatenate([one[place] for one in found]) if found else none for place in range(3)]
        return Ended(parts[0], parts[1], parts[2], np.concatenate(given_up) if given_up else none, keys)

    def traced(self, keys: np.ndarray, threads: np.ndarray) -> tuple[Paths, np.ndarray]:
        """The rows that the searches of some keys have matched, each by the thread that is its match; and which searches can be traced.

        One that began before a restart may have been in states for which the table has no room now.
        """
        starts, sizes = self._cursors.start[keys], self._cursors.at[keys] - self._cursors.start[keys]
        offsets = np.cumsum(sizes) - sizes
        before = np.empty(sizes.sum(), np.int32)
        places = np.full(sizes.sum(), -1, np.int64)
        states = self._rows.anchored[starts].astype(np.int32)
        longest, threads = int(sizes.max(initial=0)), threads.copy()
        for step in range(longest):
            live = np.flatnonzero(sizes > step)
            before[offsets[live] + step] = states[live]
            states[live] = self._searches.step(states[live], self._letters[starts[live] + step])
        traceable = self._searches.kinds(states) != TOO_MANY
        if not traceable.all():
            return self.traced(keys[traceable], threads[traceable])[0], traceable
        for step in range(longest - 1, -1, -1):
            live = np.flatnonzero(sizes > step)
            letters = self._letters[starts[live] + step]
            threads[live], places[offsets[live] + step] = self._searches.back(before[offsets[live] + step], letters, threads[live])
        rows = np.arange(len(places)) - np.repeat(offsets - starts, sizes)
        taken = places >= 0
        counts = np.bincount(np.repeat(np.arange(len(keys)), sizes)[taken], minlength=len(keys))
        return Paths(rows[taken], places[taken], counts), traceable

    def decide(self, keys: np.ndarray, moments: np.ndarray) -> None:
        """Note when the searches of some keys were over; a search begins when the one before it is."""
        self._cursors.decided[keys] = np.maximum(self._cursors.decided[keys], moments)

    def _has_row(self, keys: np.ndarray) -> np.ndarray:
        at = self._cursors.at[keys]
        inside = at < self._rows.ends[keys]
        times = self._rows.times[np.where(inside, at, 0)]
        found: np.ndarray = inside & (times <= self._cursors.limit[keys])
        return found


class SearchStarts:
    """Where searches begin: at rows that the first place of the pattern may take."""

    def __init__(self, rows: SearchRows, cursors: SearchCursors, masks: tuple[int, int], within: int) -> None:
        self._rows, self._cursors, self.within = rows, cursors, within
        wanted = np.where(rows.anchored, masks[1], masks[0])
        count = len(rows.bits)
        fits = np.where(rows.bits & wanted, np.arange(count), count)
        # For each row the first one from it on at which a match may begin.
        self._next = np.append(np.minimum.accumulate(fits[::-1])[::-1], count)

    def following(self, row: int) -> int:
        """The first row from this one on at which a match may begin; behind all of them if there is none."""
        return int(self._next[row])

    def at(self, keys: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Begin the next search of each key at a row or behind it; the keys that have one."""
        starts = self._next[rows]
        there = starts < self._rows.ends[keys]
        self._cursors.start[keys[~there]] = -1
        keys, starts = keys[there], starts[there]
        self._cursors.start[keys] = self._cursors.at[keys] = starts
        self._cursors.state[keys] = self._rows.anchored[starts]
        self._cursors.limit[keys] = self._rows.times[starts] + self.within
        return keys
