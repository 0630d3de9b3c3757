"""A search by trying, in the order of preference: for conditions over matched rows, and for matches that `where` turns down.

Each search is a generator that asks for conditions; those of all keys are evaluated together. A search that needs rows which may still
come stops, and begins again with them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.operators.patterns.automaton import ANY, END, Automaton, Successor
from headrace.operators.patterns.rows import SearchRows
from headrace.operators.patterns.traces import Trace, Traces
from headrace.operators.patterns.values import Evaluator, Sights

# The condition over the complete match, among the numbers of variables.
WHERE = -2
# The number of steps after which a search is given up.
_MOST_STEPS = 200_000

Path = tuple[int, int, "Path | None"]
"""A matched row, the place that took it, and the path before it."""
Answer = tuple[bool, str | None]
_Thread = tuple[Successor, int, "Path | None", Trace]


@dataclass(frozen=True)
class Ask:
    """Whether the condition of a variable is true for a row behind a path, or `where` for the path."""

    what: int
    row: int
    path: Path | None


@dataclass(frozen=True)
class Tried:
    """How a search ended, and at which moment that was certain: with a match, without one, or with a `fault`; or it is `open`."""

    moment: int
    path: Path | None = None
    fault: str | None = None
    open: bool = False


Search = Generator[Ask, Answer, Tried]


@dataclass(frozen=True)
class SearchTask:
    """A search to be made: the rows of its key end before `end`, those of a match are not after `limit`."""

    start: int
    end: int
    limit: int
    anchored: bool


class Backtracking:
    """Searches of one pattern. `conditions` are those over matched rows; all rows before the moment `after` are known."""

    def __init__(self, automaton: Automaton, conditions: dict[int, Evaluator], rows: SearchRows, after: int) -> None:
        self._automaton, self._conditions, self._rows, self._after = automaton, conditions, rows, after
        self._values = [value for evaluator in conditions.values() for value in evaluator.values]
        self._moving = frozenset(number for number in conditions if number >= 0)
        self._bits, self._times = list[int](), list[int]()

    def run(self, tasks: Sequence[SearchTask]) -> list[Tried]:
        """The outcome of each search."""
        if tasks and not self._bits:
            self._bits, self._times = self._rows.bits.tolist(), self._rows.times.tolist()
        done: dict[int, Tried] = {}
        searches = {number: self._search(task) for number, task in enumerate(tasks)}
        asks = {number: ask for number, search in searches.items() if (ask := _advance(search, None, number, done)) is not None}
        while asks:
            answers = self._answered(asks)
            asks = {
                number: ask for number, answer in answers.items() if (ask := _advance(searches[number], answer, number, done)) is not None
            }
        return [done[number] for number in range(len(tasks))]

    def _search(self, task: SearchTask) -> Search:
        moment, steps = self._times[task.start], 0
        # `where` is evaluated at the last row of a path.
        traces = Traces(self._values, self._automaton.variables, last=WHERE in self._conditions)
        stack: list[_Thread] = [(one, task.start, None, traces.begin) for one in reversed(self._automaton.starts(task.anchored))]
        hopeless: set[tuple[Successor, int, Trace]] = set()
        while stack:
            thread = stack.pop()
            waiting, row, path, trace = thread
            steps += 1
            if steps > _MOST_STEPS:
                return Tried(moment, fault=f"more than {_MOST_STEPS:,} steps to find a match: the pattern is true in too many ways")
            complete = waiting.done
            if not complete:
                # A thread that was here before, with a path in which conditions see the same, found nothing.
                if (waiting, row, trace) in hopeless:
                    continue
                hopeless.add((waiting, row, trace))
                over = row >= task.end or self._times[row] > task.limit
                if over and task.limit >= self._after:
                    return Tried(moment, open=True)
                moment = max(moment, task.limit if over else self._times[row])
                complete = over and waiting.place == END
                if not over:
                    fault = yield from self._take(thread, stack, traces)
                    if fault is not None:
                        return Tried(moment, fault=fault)
            if complete:
                assert path is not None
                accepted, fault = (yield Ask(WHERE, path[0], path)) if WHERE in self._conditions else (True, None)
                if accepted or fault is not None:
                    return Tried(moment, path, fault)
        return Tried(moment)

    def _take(self, thread: _Thread, stack: list[_Thread], traces: Traces) -> Generator[Ask, Answer, str | None]:
        """Put what a thread becomes with a row on the stack; the reason if that cannot be told."""
        waiting, row, path, trace = thread
        automaton, place = self._automaton, waiting.place
        if place != END:
            fits, fault = yield from self._fits(automaton.places[place].variable, row, path)
            if fault is not None:
                return fault
            if fits:
                following = traces.extended(trace, row, automaton.places[place].variable)
                stack += [(one, row + 1, (row, place, path), following) for one in reversed(automaton.follow[place])]
                return None
        if place == END or (automaton.relaxed and path is not None):
            unwanted, fault = yield from self._unwanted(waiting, row, path)
            if not unwanted and fault is None:
                stack.append((waiting, row + 1, path, trace))
            return fault
        return None

    def _fits(self, variable: int, row: int, path: Path | None) -> Generator[Ask, Answer, Answer]:
        if not self._bits[row] >> variable & 1:
            return False, None
        return (yield Ask(variable, row, path)) if variable in self._moving else (True, None)

    def _unwanted(self, waiting: Successor, row: int, path: Path | None) -> Generator[Ask, Answer, Answer]:
        """Whether a row is one that must not come."""
        for variable in sorted(waiting.absent):
            if variable == ANY:
                return True, None
            found, fault = yield from self._fits(variable, row, path)
            if found or fault is not None:
                return found, fault
        return False, None

    def _answered(self, asks: dict[int, Ask]) -> dict[int, Answer]:
        answers: dict[int, Answer] = {}
        for what in sorted({ask.what for ask in asks.values()}):
            numbers = [number for number, ask in asks.items() if ask.what == what]
            value, fault = self._conditions[what].evaluate(self._rows.frame, self._sights([asks[number] for number in numbers]))
            truths = value.cast(pl.Boolean).fill_null(False).to_list()
            reasons = [None] * len(numbers) if fault is None else fault.to_list()
            answers |= dict(zip(numbers, zip(truths, reasons, strict=True), strict=True))
        return answers

    def _sights(self, asks: Sequence[Ask]) -> Sights:
        owners, rows, variables = list[int](), list[int](), list[int]()
        for number, ask in enumerate(asks):
            pairs = [(row, self._automaton.places[place].variable) for row, place in steps_of(ask.path)]
            pairs += [] if ask.what == WHERE else [(ask.row, ask.what)]
            owners += [number] * len(pairs)
            rows += [row for row, _ in pairs]
            variables += [variable for _, variable in pairs]
        current = np.array([ask.row for ask in asks], np.int64)
        return Sights(len(asks), np.array(owners, np.int64), np.array(rows, np.int64), np.array(variables, np.int64), current)


def steps_of(path: Path | None) -> list[tuple[int, int]]:
    """The rows of a path with their places, in their order."""
    found: list[tuple[int, int]] = []
    while path is not None:
        found.append(path[:2])
        path = path[2]
    return found[::-1]


def _advance(search: Search, answer: Answer | None, number: int, done: dict[int, Tried]) -> Ask | None:
    """Let a search go on until it asks, or is done."""
    try:
        return next(search) if answer is None else search.send(answer)
    except StopIteration as stop:
        done[number] = stop.value
        return None
