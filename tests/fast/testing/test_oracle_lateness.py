"""Late records, and the sums of the others: a model in plain Python that keeps every record, batch by batch."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, hopping, session, tumbling
from headrace.core.clock import to_datetime, to_microseconds
from headrace.core.columns.keys import encode_keys, partitions_of
from headrace.operators.event_time.epoch_time import BEGINNING, END, EpochTime
from tests.fast.operators.test_sessions import Oracle as SessionOracle
from tests.support.examples import examples
from tests.support.oracles import run
from tests.support.streams import SCHEMA, Arrival, Row, arrivals, records

SECOND = 1_000_000
BOUND, GAP = 5 * SECOND, 5 * SECOND
WINDOWS = {"records.window": (10 * SECOND, 10 * SECOND), "records.window#2": (30 * SECOND, 20 * SECOND)}
Result = tuple[str | None, datetime, datetime, int]


def app(until: str) -> Declaration:
    declared = Declaration("lateness")
    stream = declared.stream("records", SCHEMA, key="key", time="at", watermark=bounded("5s"))
    for name, window in {"tumbling": tumbling("10s"), "hopping": hopping("30s", every="20s"), "session": session("5s")}.items():
        declared.view(name, stream.window(window, by="key").agg(records="count(*)").emit(until=until))
    return declared


class Model:
    """What must become of an arrival."""

    def __init__(self, arrival: Arrival, until: int) -> None:
        self.late: Counter[tuple[str, str | None, datetime]] = Counter()
        self._windows: dict[str, Counter[tuple[str | None, int, int]]] = defaultdict(Counter)
        self._sessions = SessionOracle(GAP, until)
        self._until = until
        latest: dict[int, int] = {}
        watermark = BEGINNING
        for number, batch in enumerate(arrival.batches):
            before = watermark
            for row in batch:
                self._take(row, before)
                place = _partition(row["key"], arrival.partitions)
                latest[place] = max(latest.get(place, BEGINNING), to_microseconds(row["at"]))
            watermark = max(before, min(latest.values(), default=BEGINNING) - BOUND) if latest else before
            late = self._sessions.epoch(
                tuple((row["key"], to_microseconds(row["at"]), 0) for row in batch), EpochTime(number, before, watermark)
            )
            self.late.update(("records.window#3", key, to_datetime(at)) for key, at, _ in late)
        self._sessions.epoch((), EpochTime(len(arrival.batches), watermark, END))

    def results(self) -> dict[str, set[Result]]:
        tumbling, hopping = (self._windows[step] for step in WINDOWS)
        sessions = {(key, start, end): summary[0] for (key, start, end), summary in self._sessions.final.items()}
        return {name: _results(found) for name, found in (("tumbling", tumbling), ("hopping", hopping), ("session", sessions))}

    def _take(self, row: Row, before: int) -> None:
        key, at = row["key"], to_microseconds(row["at"])
        for step, (size, hop) in WINDOWS.items():
            starts = [start for start in range(at // hop * hop, at - size, -hop) if start + size + self._until > before]
            self._windows[step].update((key, start, start + size) for start in starts)
            if not starts:
                self.late[step, key, row["at"]] += 1


def _partition(key: str | None, partitions: int) -> int:
    return max(0, int(partitions_of(encode_keys([pa.array([key], pa.string())]), partitions)[0]))


def _results(found: dict[tuple[str | None, int, int], int]) -> set[Result]:
    return {(key, to_datetime(start), to_datetime(end), count) for (key, start, end), count in found.items()}


@settings(max_examples=examples(8), report_multiple_bugs=False)
@given(st.data())
def test_late_is_what_the_model_says_and_all_the_rest_is_counted(data: st.DataObject) -> None:
    rows = data.draw(records(least=5))
    arrival = data.draw(arrivals(rows, disorder=40))
    until = data.draw(st.sampled_from([0, 20]))
    driver = run(app(f"{until}s"), arrival)
    model = Model(arrival, until * SECOND)
    for name, wanted in model.results().items():
        assert {(row["key"], row["window_start"], row["window_end"], row["records"]) for row in driver.rows(name)} == wanted, name
    assert Counter((row["step"], row["key"], row["at"]) for row in driver.late("records")) == model.late
    for count in driver.accounting():
        if str(count["step"]).startswith("records.window"):
            lost = sum(number for (step, _, _), number in model.late.items() if step == count["step"])
            assert (count["in"], count["out"], count["late"]) == (len(rows), len(rows) - lost, lost)
