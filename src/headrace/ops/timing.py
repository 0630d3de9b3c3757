"""Sample event times of an app's streams, and the fate of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from headrace.connectors.log.input import LogInput
from headrace.core.clock import to_datetime, to_microseconds
from headrace.core.durations import spelled
from headrace.engine.times.event_time_trace import Timing, timings
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.operators.event_time.record_time import times_of
from headrace.plan.nodes import Source
from headrace.plan.plan import Plan
from headrace.plan.topics import late_topic
from headrace.plan.watermarks import LossBudget

_SAMPLES = 2
_MADE_UP = (datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 12, 34, 56, tzinfo=UTC))


@dataclass(frozen=True)
class Sample:
    """An event time of a stream, whether a record has it or it is made up, and its fate."""

    source: Source
    event_time: datetime
    made_up: bool
    timings: tuple[Timing, ...]

    def __str__(self) -> str:
        kind = "made up" if self.made_up else "of one of its last records"
        align = f", read at most {spelled(self.source.align)} ahead of the slowest other stream" if self.source.align is not None else ""
        lines = [f"{self.source.name}, event time {_whole(self.event_time)} UTC ({kind}), watermark {self.source.watermark}{align}"]
        for step, windows in groupby(self.timings, key=lambda timing: timing.step):
            lines += [f"  {line}" for line in self._step(step, list(windows))]
        return "\n".join(lines if self.timings else [*lines, "  meets no step that goes by event time"])

    def _step(self, step: str, windows: list[Timing]) -> Iterator[str]:
        first = windows[0]
        yield f"{step}: {first.window}"
        if len(windows) < first.windows:
            yield f"  {first.windows:,} windows hold it, the first and the last of them:"
        for timing in windows:
            if timing.turn:
                at = f" at watermark {self._reached(timing.fires_at, timing.closed_by)}" if timing.fires_at is not None else ""
                yield f"  {timing.turn}{at}"
                continue
            if timing.fires_at is None:
                yield "  one window, which fires when the input ends"
                continue
            place = f"window {self._shown(timing.window_start)} to {self._shown(timing.window_end)} fires"
            if timing.window_start == timing.window_end:
                place = "takes its place in a window"
            yield f"  {place} at watermark {self._reached(timing.fires_at, timing.closed_by)}"
        yield from [f"  early panes {first.early}"] * bool(first.early)
        yield from [f"  late records correct it {first.corrected}"] * bool(first.corrected)
        if first.late_at is not None:
            fate = "is counted and dropped" if self.source.late == "drop" else f"goes to {late_topic(self.source.name)}"
            yield f"  late from watermark {self._reached(first.late_at, first.late_by)} on: an event of this time then {fate}"

    def _reached(self, watermark: datetime, record: datetime | None) -> str:
        # A loss budget learns a smaller bound than it begins with.
        least = " at the latest" if isinstance(self.source.watermark, LossBudget) else ""
        return f"{self._shown(watermark)} (record of {self._shown(record)}{least})"

    def _shown(self, moment: datetime | None) -> str:
        """A moment, without the day where it is that of the event."""
        if moment is None:
            return "none"
        return _whole(moment).partition(" ")[2] if moment.date() == self.event_time.date() else _whole(moment)


def samples(plan: Plan, log: Log | None) -> Iterator[Sample]:
    """For every stream with an event time: the times of its latest records in the log, or made-up ones where there is none."""
    for source in plan.sources:
        if source.time is None:
            continue
        found = _latest(source, log) if source.connector is None and log is not None else []
        for time in found or [to_microseconds(moment) for moment in _MADE_UP]:
            told = tuple(timings(plan, source.name, time))
            yield Sample(source, to_datetime(time), not found, told)


def _latest(source: Source, log: Log) -> list[int]:
    """The event times of the last record of each partition, some of them."""
    assert source.time is not None
    topic = LogInput(log.path, source.name, source.time.columns, None)
    try:
        begin, times = topic.beginning(), set[int]()
    except UnknownTopic:
        return []
    for partition, end in topic.end().items():
        if end > begin.get(partition, 0):
            for batch in topic.read(partition, end - 1, end):
                times |= set(times_of(source.time, batch).drop_null().to_pylist())
    return sorted(times)[-_SAMPLES:]


def _whole(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}" + (f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else "")
