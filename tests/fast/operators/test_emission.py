"""Panes of every kind of window, mode and lateness against plain Python, with restarts and splits in between."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import product

import polars as pl
import pytest

from headrace.operators.contract import Arrived, Stateful
from headrace.operators.event_time.epoch_time import BEGINNING, END, EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.operators.windows.emission import Emission, Trigger
from headrace.operators.windows.intervals import Intervals, IntervalSpec
from headrace.operators.windows.layouts import ByFunction, Regular, Whole, WindowLayout
from headrace.operators.windows.sessions import Sessions, SessionSpec
from tests.fast.operators.stories import AGGREGATES, Record, frame, story, summary
from tests.fast.operators.test_sessions import Oracle as SessionOracle
from tests.support.examples import seeds, some

Value = tuple[int, ...]
Said = tuple[int, str | None, int | None, Value, str, int]
MODES = ("discarding", "accumulating", "retracting")
ARGUMENTS = (("x", pl.Int64()),)
TRIGGERS = ({}, {"early": 7}, {"every": 3}, {"early": 20, "every": 2}, {"late": 15}, {"early": 5, "late": 30})


def uneven(times: object) -> tuple[object, object]:
    """Windows of 10 and 20 by turns."""
    thirds = times.astype("int64") % 30  # type: ignore[attr-defined]
    start = times - thirds + (thirds >= 10) * 10  # type: ignore[operator]
    return start, start + 10 + (thirds >= 10) * 10


LAYOUTS = {
    "tumbling": (Regular(10, 10, 3), lambda t: [(s := (t - 3) // 10 * 10 + 3, s + 10)]),
    "hopping": (Regular(25, 10), lambda t: [(s, s + 25) for s in range(t // 10 * 10, t - 25, -10)]),
    "global": (Whole(), lambda t: [(BEGINNING, END)]),
    "custom": (
        ByFunction(uneven),
        lambda t: [(t // 30 * 30, t // 30 * 30 + 10) if t % 30 < 10 else (t // 30 * 30 + 10, t // 30 * 30 + 30)],
    ),
}


@dataclass
class Window:
    """A window of the oracle: its records, those since the last pane, and what was said of it."""

    all: list[tuple[int, int]] = field(default_factory=list)
    fresh: list[tuple[int, int]] = field(default_factory=list)
    panes: int = 0
    said: tuple[Value, str, int] | None = None


class Oracle:
    """Windows as lists of records, epoch by epoch."""

    def __init__(self, layout: str, emission: Emission) -> None:
        self._windows_of, self._emission = LAYOUTS[layout][1], emission
        self._open: dict[tuple[str | None, int, int], Window] = {}

    def epoch(self, records: tuple[Record, ...], time: EpochTime) -> tuple[Counter[Said], list[Record]]:
        until, late = self._emission.until, []
        for key, at, value in records:
            windows = self._windows_of(at)
            if max(stop for _, stop in windows) + until <= time.before:
                late.append((key, at, value))
            for start, stop in windows:
                if stop + until > time.before:
                    window = self._open.setdefault((key, start, stop), Window())
                    window.all.append((at, value))
                    window.fresh.append((at, value))
        said: Counter[Said] = Counter()
        for (key, start, stop), window in list(self._open.items()):
            if pane := self._pane(stop, window, time):
                said.update(self._say(key, start, window, pane))
            if stop + until <= time.after:
                del self._open[key, start, stop]
        return said, late

    def _pane(self, stop: int, window: Window, time: EpochTime) -> str | None:
        trigger, fresh = self._emission.trigger, len(window.fresh)
        if stop <= time.before:
            over = stop + self._emission.until <= time.after
            return "late" if fresh and (not trigger.late or over or ticks(trigger.late, time)) else None
        if stop <= time.after:
            return "on-time"
        early = trigger.early and ticks(trigger.early, time) and fresh
        return "early" if early or (trigger.every and fresh >= trigger.every) else None

    def _say(self, key: str | None, start: int, window: Window, pane: str) -> list[Said]:
        mode, shown = self._emission.trigger.mode, start if start > BEGINNING else None
        contents = window.fresh if mode == "discarding" else window.all
        window.fresh = []
        said: list[Said] = []
        if mode == "retracting" and window.said:
            said.append((-1, key, shown, *window.said))
        if contents or pane == "on-time":
            window.said = (summary(contents) if contents else (0, None, None, None), pane, window.panes)
            window.panes += 1
            said.append((1, key, shown, *window.said))
        return said


def ticks(period: int, time: EpochTime) -> bool:
    return any(moment % period == 0 for moment in range(max(time.before, -200) + 1, min(time.after, 400) + 1)) or time.after == END


def shown(results: list[pl.DataFrame]) -> Counter[Said]:
    said: Counter[Said] = Counter()
    for row in [row for result in results for row in result.to_dicts()]:
        start = row["window_start"]
        value = (row["n"], row["total"], row["top"], row["latest"])
        said[row["_op"], row["k"], None if start is None else round(start.timestamp() * 1e6), value, row["pane"], row["revision"]] += 1
    return said


def restarted(state: Stateful, fresh: Stateful, store: MemoryStore) -> Stateful:
    fresh.restore(state.manifest(), store)
    return fresh


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_pane_is_that_of_plain_python(layout: str, mode: str) -> None:
    for seed, trigger in some(list(enumerate(TRIGGERS)), list(LAYOUTS).index(layout) + MODES.index(mode)):
        until = 25 if seed % 2 or "late" in trigger else 0
        chance = random.Random(seed)
        # Nothing comes after the end of all time.
        emission = Emission(("k",), AGGREGATES, 0 if layout == "global" else until, Trigger(**trigger, mode=mode), arguments=ARGUMENTS)
        placed: WindowLayout = LAYOUTS[layout][0]
        spec, store = IntervalSpec(placed, emission), MemoryStore()
        state: Stateful = Intervals(spec)
        oracle, told = Oracle(layout, emission), story(seed)
        for time, records in [*told.epochs, (told.end, ())]:
            cut = chance.randrange(len(records) + 1)
            entered = [spec.enter(frame(part), time) for part in (records[:cut], records[cut:]) if part]
            outcome = state.run(Arrived([part.rows for part in entered if len(part.rows)]), time, store)
            said, late = oracle.epoch(records, time)
            assert shown(list(outcome.results)) == said, f"{trigger} until {until}, epoch {time}"
            given = [row for part in entered if part.late is not None for row in part.late.select("k", "_time", "x").rows()]
            assert sorted(given, key=str) == sorted(late, key=str)
            if chance.random() < 0.4:
                state = restarted(state, Intervals(spec), store)
        assert state.size.rows == 0, "every window is closed, yet state is left"


@pytest.mark.parametrize("trigger", TRIGGERS, ids=str)
def test_panes_of_sessions_that_retract_leave_the_sessions_that_there_are(trigger: dict[str, int]) -> None:
    for seed in seeds(4):
        chance = random.Random(seed)
        gap, until = chance.choice([3, 5, 10]), chance.choice([0, 30])
        spec, store = SessionSpec(gap, Emission(("k",), AGGREGATES, until, Trigger(**trigger))), MemoryStore()
        state: Stateful = Sessions(spec)
        held: dict[tuple[str | None, int, int], tuple[Value, str, int]] = {}
        oracle, told = SessionOracle(gap, until), story(seed)
        for time, records in [*told.epochs, (told.end, ())]:
            entered = spec.enter(frame(records), time)
            outcome = state.run(Arrived([entered.rows], [] if entered.suspects is None else [entered.suspects]), time, store)
            late = [] if outcome.late is None else outcome.late.select("k", "_time", "x").rows()
            assert sorted(late, key=str) == sorted(oracle.epoch(records, time), key=str)
            for row in [row for result in outcome.results for row in result.to_dicts()]:
                place = (row["k"], *(round(row[bound].timestamp() * 1e6) for bound in ("window_start", "window_end")))
                said = ((row["n"], row["total"], row["top"], row["latest"]), row["pane"], row["revision"])
                if row["_op"] > 0:
                    assert place not in held, f"seed {seed}: {place} is emitted twice without being retracted"
                    held[place] = said
                else:
                    assert held.pop(place) == said, f"seed {seed}: {place} is retracted with something else than was emitted"
            if chance.random() < 0.4:
                state = restarted(state, Sessions(spec), store)
        assert {place: said[0] for place, said in held.items()} == oracle.final, f"seed {seed}"
        assert state.size.rows == 0


def test_panes_of_sessions_that_discard_hold_each_record_once() -> None:
    for seed, trigger in product(seeds(2), TRIGGERS):
        spec, store = (
            SessionSpec(6, Emission(("k",), AGGREGATES, 20, Trigger(**trigger, mode="discarding"), arguments=ARGUMENTS)),
            MemoryStore(),
        )
        state, told, count, total = Sessions(spec), story(seed), 0, 0
        for time, records in [*told.epochs, (told.end, ())]:
            entered = spec.enter(frame(records), time)
            outcome = state.run(Arrived([entered.rows], [] if entered.suspects is None else [entered.suspects]), time, store)
            count += len(records) - (0 if outcome.late is None else len(outcome.late))
            total += sum(result["n"].sum() for result in outcome.results)
        assert total == count, f"seed {seed}, {trigger}"
