"""Session windows against plain Python, record by record."""

from __future__ import annotations

import random
from collections.abc import Sequence

import polars as pl
import pytest

from headrace.operators.contract import Arrived
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.operators.windows.emission import Emission
from headrace.operators.windows.sessions import Sessions, SessionSpec
from tests.fast.operators.stories import AGGREGATES, Record, entered, frame, run, story, summary
from tests.support.examples import seeds

Key = tuple[str | None, int, int]
Held = dict[Key, tuple[int, ...]]


class Oracle:
    """Sessions as lists of records; epoch by epoch, with the same rule for what is late."""

    def __init__(self, gap: int, until: int) -> None:
        self._gap, self._until = gap, until
        self._open: dict[str | None, list[list[tuple[int, int]]]] = {}
        self.final: Held = {}

    def epoch(self, records: tuple[Record, ...], time: EpochTime) -> list[Record]:
        late: list[Record] = []
        for key in {key for key, _, _ in records} | set(self._open):
            new = [[(at, value)] for k, at, value in records if k == key]
            kept = self._open.get(key, [])
            sessions = self._merged(kept + new)
            held = {id(record) for session in kept for record in session}
            for session in sessions:
                if not any(id(record) in held for record in session) and self._end(session) + self._until <= time.before:
                    late += [(key, at, value) for at, value in session]
                    continue
                for old in kept:
                    if old[0] in session:
                        self.final.pop((key, old[0][0], self._end(old)), None)
                if self._end(session) <= time.after:
                    self.final[key, session[0][0], self._end(session)] = summary(session)
            lost = [record for record in late if record[0] == key]
            self._open[key] = [s for s in sessions if self._end(s) + self._until > time.after and (key, *s[0]) not in lost]
        return late

    def _merged(self, sessions: list[list[tuple[int, int]]]) -> list[list[tuple[int, int]]]:
        merged: list[list[tuple[int, int]]] = []
        for session in sorted(sessions, key=lambda s: s[0][0]):
            if merged and session[0][0] < self._end(merged[-1]):
                merged[-1] = sorted(merged[-1] + session, key=lambda record: record[0])
            else:
                merged.append(list(session))
        return merged

    def _end(self, session: list[tuple[int, int]]) -> int:
        return max(at for at, _ in session) + self._gap


def apply(held: Held, results: Sequence[pl.DataFrame], seed: int) -> None:
    for row in [row for result in results for row in result.to_dicts()]:
        key = (row["k"], round(row["window_start"].timestamp() * 1e6), round(row["window_end"].timestamp() * 1e6))
        value = (row["n"], row["total"], row["top"], row["latest"])
        if row["_op"] > 0:
            assert key not in held, f"seed {seed}: {key} is emitted twice without being retracted"
            held[key] = value
        else:
            assert held.pop(key) == value, f"seed {seed}: {key} is retracted with another value than it had"


@pytest.mark.parametrize("block", range(4))
def test_the_changelog_equals_plain_python_under_disorder_lateness_and_restarts(block: int) -> None:
    for seed in seeds(7, block):
        chance = random.Random(seed)
        spec = SessionSpec(chance.choice([3, 5, 10]), Emission(("k",), AGGREGATES, until=chance.choice([0, 0, 10, 40])))
        told, store, sessions = story(seed), MemoryStore(), Sessions(spec)
        oracle, held = Oracle(spec.gap, spec.emission.until), Held()
        for time, records in told.epochs:
            arrived = frame(records)
            doubtful, sure = arrived.filter(spec.is_suspect(time)), arrived.filter(~spec.is_suspect(time))
            cut = chance.randrange(len(sure) + 1)
            parts = [entered(spec, part) for part in (sure[:cut], sure[cut:]) if len(part)]
            outcome = sessions.run(Arrived(parts, [doubtful] if len(doubtful) else []), time, store)
            apply(held, outcome.results, seed)
            wanted = oracle.epoch(records, time)
            given = [] if outcome.late is None else outcome.late.select("k", "_time", "x").rows()
            assert sorted(given, key=str) == sorted(wanted, key=str), f"seed {seed}: late"
            counted = {"taken": len(doubtful), "out": len(doubtful) - len(given), "late": len(given)}
            assert outcome.counts == (counted if len(doubtful) else {})
            if chance.random() < 0.3:
                manifest, sessions = sessions.manifest(), Sessions(spec)
                sessions.restore(manifest, store)
        apply(held, run(sessions, [], told.end, store), seed)
        oracle.epoch((), told.end)
        assert held == oracle.final, f"seed {seed}"
        assert sessions.size.rows == 0, f"seed {seed}: state is left behind"


def test_two_sessions_joined_by_a_late_record_are_both_retracted() -> None:
    spec = SessionSpec(10, Emission(("k",), AGGREGATES, until=100))
    sessions, store, held = Sessions(spec), MemoryStore(), Held()
    first = run(sessions, [entered(spec, frame([("a", 0, 1), ("a", 15, 2)]))], EpochTime(1, -100, 40), store)
    apply(held, first, 0)
    assert set(held) == {("a", 0, 10), ("a", 15, 25)}
    second = run(sessions, [entered(spec, frame([("a", 8, 3)]))], EpochTime(2, 40, 40), store)
    assert [result["_op"].to_list() for result in second] == [[-1, -1], [1]]
    assert second[1].select("pane", "revision").rows() == [("late", 1)]
    apply(held, second, 0)
    assert held == {("a", 0, 25): (3, 6, 3, 2)}
