"""The automaton made deterministic, for conditions that are the same for a row in every match.

A state is the ordered list of what a search still waits for, preferred first; a letter says which conditions are true for a row. States
are made when they are first met, and have numbers in one process; where they are stored they are texts.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from headrace.operators.patterns.automaton import ANY, END, Automaton

# In a state: the match that is complete unless something before it becomes one.
MATCHED = -1
# What a state means: go on, the first thread is a match, no thread is left, or there are too many states for this way of searching.
RUNNING, FOUND, FAILED, TOO_MANY = 0, 1, 2, 3
START, ANCHORED = 0, 1
_MOST_STATES = 4_000
# Up to this number of variables, letters are looked up in a table.
_FEW = 10
State = tuple[int, ...]


class Searches:
    """The table of an automaton: next states by state and letter, and the way back from each thread to the one it came from."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        listed = (*automaton.begin, *automaton.begin_anchored, *(one for following in automaton.follow for one in following))
        self._known = list(dict.fromkeys(listed))
        self._waiting = {one: number for number, one in enumerate(self._known)}
        self._numbers: dict[State, int] = {}
        self._states: list[State] = []
        self._letters: dict[int, int] = {}
        self._bits: list[int] = []
        self._next = np.full((16, 16), -1, np.int32)
        self._parent = np.full((16, 16, 4), -1, np.int16)
        self._place = np.full((16, 16, 4), -1, np.int16)
        self._kind = np.zeros(16, np.int8)
        self._at_end = np.full(16, -1, np.int16)
        # The first two are before the first row, which has to be taken.
        for anchored in (False, True):
            self._add(tuple(self._waiting[one] for one in automaton.starts(anchored)), RUNNING)
        self._numbers[()] = self._add((), FAILED)
        self._too_many = self._add((), TOO_MANY)

    def written(self, states: np.ndarray) -> pl.Series:
        """States of searches that have begun, as texts that mean the same in every process; below zero, null."""
        found, inverse = np.unique(states, return_inverse=True)
        texts = [None if one < 0 else ",".join(str(thread) for thread in self._states[one]) for one in found.tolist()]
        return pl.Series(texts, dtype=pl.String)[inverse.reshape(-1)]

    def read(self, texts: np.ndarray) -> np.ndarray:
        """The numbers of states, from their texts; below zero where there is none, or no room for one more state."""
        listed = texts.tolist()
        numbers = {text: -1 if text is None else self._state(tuple(int(one) for one in text.split(","))) for text in set(listed)}
        return np.array([-1 if numbers[text] == self._too_many else numbers[text] for text in listed], np.int32)

    def letters(self, bits: np.ndarray) -> np.ndarray:
        """Letters of rows, by the bits of the conditions that are true for each."""
        few = 1 << len(self._automaton.variables) if len(self._automaton.variables) <= _FEW else 0
        found = np.flatnonzero(np.bincount(bits, minlength=few)) if few else np.unique(bits)
        for one in found.tolist():
            if self._letters.setdefault(one, len(self._bits)) == len(self._bits):
                self._bits.append(one)
        while self._next.shape[1] < len(self._bits):
            self._grow(1)
        numbers = np.array([self._letters[one] for one in found.tolist()], np.int32)
        if not few:
            return np.asarray(numbers[np.searchsorted(found, bits)])
        table = np.zeros(few, np.int32)
        table[found] = numbers
        return np.asarray(table[bits])

    def step(self, states: np.ndarray, letters: np.ndarray) -> np.ndarray:
        """The states that follow, for many searches at once."""
        found = self._next[states, letters]
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            pairs = states[unknown].astype(np.int64) * len(self._bits) + letters[unknown]
            for pair in np.unique(pairs).tolist():
                self._derive(*divmod(pair, len(self._bits)))
            found = self._next[states, letters]
        return np.asarray(found)

    def next_state(self, state: int, letter: int) -> int:
        """The state that follows, for one search."""
        found = self._next[state, letter]
        if found < 0:
            self._derive(state, letter)
            found = self._next[state, letter]
        return int(found)

    def kind(self, state: int) -> int:
        return int(self._kind[state])

    def thread_at_end(self, state: int) -> int:
        return int(self._at_end[state])

    def back_once(self, state: int, letter: int, thread: int) -> tuple[int, int]:
        """`back` for one thread."""
        return int(self._parent[state, letter, thread]), int(self._place[state, letter, thread])

    def kinds(self, states: np.ndarray) -> np.ndarray:
        return np.asarray(self._kind[states])

    def at_end(self, states: np.ndarray) -> np.ndarray:
        """The thread that is a match when the time expires; -1 where there is none."""
        return np.asarray(self._at_end[states])

    def back(self, states: np.ndarray, letters: np.ndarray, threads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From threads behind a row to the threads before it, and the place that took the row; -1 where it was passed over."""
        return self._parent[states, letters, threads], self._place[states, letters, threads]

    def _derive(self, number: int, letter: int) -> None:
        if number == self._too_many:
            # It stays, so that a search that is followed again from its first row is seen to come to it.
            self._next[number, letter] = number
            return
        first = number <= ANCHORED
        bits, threads, parents, places = self._bits[letter], list[int](), list[int](), list[int]()

        def add(thread: int, parent: int, place: int) -> None:
            if thread not in threads:
                threads.append(thread)
                parents.append(parent)
                places.append(place)

        for slot, thread in enumerate(self._states[number]):
            if thread == MATCHED:
                add(MATCHED, slot, -1)
                break
            for following, place in self._after(thread, bits, first):
                add(following, slot, place)
            if MATCHED in threads:
                break
        state = self._state(tuple(threads))
        while self._parent.shape[2] < len(threads):
            self._grow(2)
        self._next[number, letter] = state
        self._parent[number, letter, : len(threads)] = parents
        self._place[number, letter, : len(threads)] = places

    def _after(self, thread: int, bits: int, first: bool) -> list[tuple[int, int]]:
        """What a thread becomes with a row, and the place that takes it."""
        waiting, automaton = self._known[thread], self._automaton
        if waiting.place != END and bits >> automaton.places[waiting.place].variable & 1:
            found = list[tuple[int, int]]()
            for following in automaton.follow[waiting.place]:
                found.append((MATCHED if following.done else self._waiting[following], waiting.place))
                if following.done:
                    break
            return found
        stays = waiting.place == END or (automaton.relaxed and not first)
        unwanted = any(one == ANY or bits >> one & 1 for one in waiting.absent)
        return [(thread, -1)] if stays and not unwanted else []

    def _state(self, state: State) -> int:
        known = self._numbers.get(state)
        if known is not None:
            return known
        if len(self._states) >= _MOST_STATES:
            return self._too_many
        self._numbers[state] = self._add(state, FOUND if state[0] == MATCHED else RUNNING)
        return self._numbers[state]

    def _add(self, state: State, kind: int) -> int:
        number = len(self._states)
        self._states.append(state)
        while len(self._kind) <= number:
            self._grow(0)
        self._kind[number] = kind
        ends = [slot for slot, thread in enumerate(state) if thread == MATCHED or self._known[thread].place == END]
        self._at_end[number] = ends[0] if ends else -1
        return number

    def _grow(self, axis: int) -> None:
        def grown(table: np.ndarray) -> np.ndarray:
            return np.concatenate([table, np.full_like(table, -1)], axis=axis)

        if axis < 2:
            self._next = grown(self._next)
        self._parent, self._place = grown(self._parent), grown(self._place)
        if axis == 0:
            self._kind = np.concatenate([self._kind, np.zeros_like(self._kind)])
            self._at_end = np.concatenate([self._at_end, np.full_like(self._at_end, -1)])
