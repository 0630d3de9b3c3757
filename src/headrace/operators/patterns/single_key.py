"""The automaton over one key, match after match: for the few keys that have far more rows than the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headrace.operators.patterns.lockstep import SearchStarts
from headrace.operators.patterns.rows import SearchCursors, SearchRows
from headrace.operators.patterns.searches import FAILED, FOUND, RUNNING, TOO_MANY, Searches

Steps = list[tuple[int, int]]
"""The rows of a path with their places, in their order."""


@dataclass(frozen=True)
class Candidate:
    """A match that holds if `where` does: the row it begins at, when it was certain, and its path."""

    start: int
    moment: int
    path: Steps


@dataclass
class _Here:
    """The position of the search of a key."""

    start: int
    at: int
    state: int
    limit: int
    decided: int


class Alone:
    """Searches of single keys, in plain Python: cheaper than columns of one row."""

    def __init__(self, searches: Searches, rows: SearchRows, cursors: SearchCursors, restarts: SearchStarts, after: int) -> None:
        self._searches, self._rows, self._cursors, self._restarts, self._after = searches, rows, cursors, restarts, after

    def run(self, key: int, most: int, following: Callable[[Steps, int], int]) -> tuple[list[Candidate], bool]:
        """At most `most` matches one after the other; `following` is the row at which the next search begins.

        The second is whether the search came to more states than there may be.
        """
        first, end = int(self._rows.begins[key]), int(self._rows.ends[key])
        times, bits = self._rows.times[first:end].tolist(), self._searches.letters(self._rows.bits[first:end]).tolist()
        here, found, given_up = self._here(key), list[Candidate](), False
        while here.start >= 0 and len(found) < most:
            ended = self._one(here, first, times, bits)
            if ended is None:
                break
            thread, seen, given_up = ended
            if given_up:
                break
            following_row = here.start + 1
            if thread >= 0:
                path = self._traced(here.start, first, seen, bits, thread)
                found.append(Candidate(here.start, here.decided, path))
                following_row = following(path, here.start)
            self._restart(here, following_row, first, end, times)
        self._keep(key, here)
        return found, given_up

    def _one(self, here: _Here, first: int, times: list[int], letters: list[int]) -> tuple[int, list[int], bool] | None:
        """Let one search end: its thread that is a match (-1: none), and the states before each row. None while it is open."""
        step, seen = self._searches.next_state, list[int]()
        state = int(self._rows.anchored[here.start])
        for row in range(here.start, here.at):
            seen.append(state)
            state = step(state, letters[row - first])
        if self._searches.kind(state) == TOO_MANY:
            # The table of a process that was restarted is another one, and has less room.
            return -1, seen, True
        while True:
            place = here.at - first
            if place >= len(times) or times[place] > here.limit:
                here.state = state
                if here.limit >= self._after:
                    return None
                here.decided = max(here.decided, here.limit)
                return self._searches.thread_at_end(state), seen, False
            seen.append(state)
            state = step(state, letters[place])
            here.at += 1
            kind = self._searches.kind(state)
            if kind == RUNNING:
                continue
            here.state = state
            if kind in (FOUND, FAILED):
                here.decided = max(here.decided, times[place])
                return (0 if kind == FOUND else -1), seen, False
            return -1, seen, True

    def _traced(self, start: int, first: int, seen: list[int], letters: list[int], thread: int) -> Steps:
        path: Steps = []
        for place in range(len(seen) - 1, -1, -1):
            thread, taken = self._searches.back_once(seen[place], letters[start - first + place], thread)
            if taken >= 0:
                path.append((start + place, taken))
        return path[::-1]

    def _here(self, key: int) -> _Here:
        cursors = self._cursors
        return _Here(*(int(one[key]) for one in (cursors.start, cursors.at, cursors.state, cursors.limit, cursors.decided)))

    def _restart(self, here: _Here, row: int, first: int, end: int, times: list[int]) -> None:
        start = self._restarts.following(row)
        here.start = start if start < end else -1
        if here.start >= 0:
            here.at, here.state = start, int(self._rows.anchored[start])
            here.limit = times[start - first] + self._restarts.within

    def _keep(self, key: int, here: _Here) -> None:
        cursors = self._cursors
        cursors.start[key], cursors.at[key], cursors.state[key] = here.start, here.at, here.state
        cursors.limit[key], cursors.decided[key] = here.limit, np.int64(here.decided)
