"""Bounded read-ahead: no stream is read further ahead of the slowest than asked for, and none is held forever."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.connectors.input import Ahead, Position, shared_out
from headrace.engine.planning.alignment import Standing, aligned
from headrace.operators.event_time.epoch_time import END
from headrace.operators.event_time.watermark import StreamTime
from headrace.plan.watermarks import Bounded
from tests.support.examples import examples

RULE = Bounded(timedelta(0), idle=timedelta(microseconds=50))
BOUND = 10


@dataclass(frozen=True)
class Listed:
    """An input whose partitions are lists of event times."""

    partitions: list[list[int]]

    def earliest(self, partitions: Sequence[int]) -> Position:
        return dict.fromkeys(partitions, 0)

    def beginning(self) -> Position:
        return dict.fromkeys(range(len(self.partitions)), 0)

    def end(self) -> Position:
        return {index: len(times) for index, times in enumerate(self.partitions)}

    def ahead(self, start: Position, end: Position, rows: int | None, limit: int) -> Ahead:
        position = shared_out(start, end, rows)
        spans = {index: self.partitions[index][start.get(index, 0) : last] for index, last in position.items()}
        return Ahead(position, {index: max(times) for index, times in spans.items() if times})

    def read(self, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"at": self.partitions[partition][first:last]})

    def done(self, position: Position) -> None:
        return


@dataclass
class Streams:
    """Streams that are read epoch by epoch."""

    inputs: Mapping[str, Listed]

    def __post_init__(self) -> None:
        self.positions = {name: dict(source.beginning()) for name, source in self.inputs.items()}
        self.progress = dict.fromkeys(self.inputs, StreamTime())

    def standings(self, *, complete: bool) -> dict[str, Standing]:
        return {
            name: Standing(source, self.positions[name], source.end(), self.progress[name], RULE, END, complete)
            for name, source in self.inputs.items()
        }

    def epoch(self, now: int = 0, *, complete: bool = True) -> bool:
        """Read what may be read; whether anything was."""
        ends = aligned(self.standings(complete=complete), dict.fromkeys(self.inputs, BOUND), now)
        moved = False
        for name, source in self.inputs.items():
            moved |= ends[name] != self.positions[name]
            self.progress[name] = self.progress[name].observe(source.ahead(self.positions[name], ends[name], None, END).latest, now)
            self.positions[name] = dict(ends[name])
        return moved


partition = st.lists(st.integers(0, 100), max_size=12)
streams = st.lists(st.lists(partition, min_size=1, max_size=3), min_size=2, max_size=3)


@given(streams)
@settings(max_examples=examples(60))
def test_everything_is_read_and_nothing_further_ahead_than_asked_for(content: list[list[list[int]]]) -> None:
    read = Streams({str(number): Listed(partitions) for number, partitions in enumerate(content)})
    while True:
        reached = {name: standing.reached(0) for name, standing in read.standings(complete=True).items()}
        before = {name: dict(position) for name, position in read.positions.items()}
        if not read.epoch():
            break
        for name, source in read.inputs.items():
            others = [time for other, time in reached.items() if other != name and time is not None]
            new = source.ahead(before[name], read.positions[name], None, END).latest.values()
            assert not others or max(new, default=0) <= min(others) + BOUND
    assert read.positions == {name: source.end() for name, source in read.inputs.items()}


def test_a_stream_with_nothing_to_read_is_waited_for_until_it_is_idle() -> None:
    read = Streams({"fast": Listed([list(range(100))]), "slow": Listed([[5]])})
    read.epoch(complete=False)
    assert read.positions == {"fast": {0: 16}, "slow": {0: 1}}
    assert not read.epoch(49, complete=False)
    assert read.epoch(50, complete=False)
    assert read.positions["fast"] == {0: 100}


def test_a_late_record_does_not_hold_the_others_back() -> None:
    seen = StreamTime().observe({0: 50}, 0)
    assert Standing(Listed([[50, 2]]), {0: 1}, {0: 2}, seen, RULE, END).reached(0) == 50
    assert Standing(Listed([[50, 2]]), {0: 0}, {0: 2}, StreamTime(), RULE, END).reached(0) == 50
    assert Standing(Listed([[50], []]), {0: 1}, {0: 1, 1: 0}, seen, RULE, END).reached(50) is None
