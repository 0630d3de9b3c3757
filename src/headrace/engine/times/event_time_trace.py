"""The trace of an event time through a plan: its windows, when each emits, when steps by key process it, and when it would be late.

The watermark reaches a moment when every partition that is not idle has had a record that is later by the stream's bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import singledispatch

import polars as pl

from headrace.core.clock import to_datetime
from headrace.core.durations import microseconds, spelled
from headrace.engine.times.join_times import JoinTimes, join_times
from headrace.operators.event_time.epoch_time import BEGINNING, END
from headrace.operators.event_time.lateness_histogram import chosen_bound
from headrace.operators.windows.emission import Emission
from headrace.operators.windows.intervals import IntervalSpec
from headrace.operators.windows.registry import windowed
from headrace.plan.nodes import Node, Source
from headrace.plan.plan import Plan
from headrace.plan.windows.emit import Emit
from headrace.plan.windows.kinds import Count, Hopping, Session, Sliding, Window
from headrace.plan.windows.processing_time import ProcessingTime

# Up to this many windows that contain an event are all listed; of more, the first and the last.
_FEW = 4
# The time of a window's result is its last moment.
_TICK = 1

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One window of an event of a stream, or of a result it is part of; or its `turn` in a step without such a window.

    `fires_at` is the watermark at which the window emits its result, `closed_by` the event time of a record that moves the watermark there.
    From the watermark `late_at` on, which a record of `late_by` reaches, an event of this time is late; None where it never is, or where an
    earlier step decides.
    """

    stream: str
    event_time: datetime
    step: str
    window: str
    windows: int = 0
    window_start: datetime | None = None
    window_end: datetime | None = None
    fires_at: datetime | None
    closed_by: datetime | None
    early: str = ""
    corrected: str = ""
    late_at: datetime | None
    late_by: datetime | None
    turn: str = ""


def timings(plan: Plan, stream: str, event_time: int) -> Iterator[Timing]:
    """The timings of an event time of a stream in each step that depends on time, in the order of the steps."""
    source = next(node for node in plan.sources if node.name == stream)
    # The moments that reach a step: the event itself, or the results that it is part of.
    moments: dict[str, list[int]] = {source.name: [event_time]}
    for node in plan.nodes:
        came = sorted({moment for before in node.inputs for moment in moments.get(before.name, ())})
        if not came or node.side_of is not None:
            continue
        moments[node.name] = came
        event = _EventAtStep(node, source, event_time)
        if node.windowing is not None:
            spans = sorted({span for moment in came for span in spans_of(node.windowing, moment)})
            yield from _in_windows(event, node.windowing, spans)
            moments[node.name] = [stop - _TICK for _, stop in spans if stop < END]
        elif met := [
            one for before in dict.fromkeys(node.inputs) for at in moments.get(before.name, ()) for one in join_times(node, before, at)
        ]:
            yield from (_met(event, one) for one in met)
        elif node.judges_lateness:
            yield _by_key(event, came[-1])


@dataclass(frozen=True)
class _EventAtStep:
    """An event of a stream at a step that depends on time."""

    node: Node
    source: Source
    time: int

    def timing(self, turn: str = "", fires_at: int = END, late_at: int = END) -> Timing:
        """Its timing by two watermarks: END where it waits for none, or is never late. Where an earlier step decides, it is not late."""
        late_at = END if _decided_before(self.node) else late_at
        return Timing(
            stream=self.source.name,
            event_time=to_datetime(self.time),
            step=self.node.name,
            window=self.node.does if self.node.windowing is None else str(self.node.windowing),
            fires_at=_moment(fires_at),
            closed_by=_record(self.source, fires_at),
            late_at=_moment(late_at),
            late_by=_record(self.source, late_at),
            turn=turn,
        )


def _in_windows(event: _EventAtStep, window: Window, spans: list[Span]) -> Iterator[Timing]:
    if not spans:
        yield event.timing("the wall clock decides, not its time" if window.by_clock else "no window holds it: a dead letter")
        return
    node = event.node
    # A window that ends with an event contains its end.
    beyond = _TICK if window.positional else 0
    # The windows of later events contain an event whose own window is closed. A result is in time if its event was.
    late_at = spans[-1][1] + beyond + microseconds(window.trails + node.lateness)
    early, corrected = ("", "") if node.panes is None else (_early(node.panes), _corrected(node.panes))
    for start, stop in spans if len(spans) <= _FEW else [spans[0], spans[-1]]:
        yield replace(
            event.timing(fires_at=stop + beyond, late_at=late_at),
            windows=len(spans),
            window_start=_moment(start),
            window_end=_moment(stop),
            early=early,
            corrected=corrected,
        )


def _by_key(event: _EventAtStep, moment: int) -> Timing:
    """An event behind the watermark is late. Otherwise it waits for its turn, unless the step takes events as they arrive."""
    passed = moment + _TICK + microseconds(event.node.lateness)
    if event.node.waits:
        return event.timing("has its turn", passed, passed)
    return event.timing("has its turn in the epoch in which it comes", late_at=passed)


def _met(event: _EventAtStep, met: JoinTimes) -> Timing:
    timing = event.timing(met.words, met.at, met.late_at)
    return replace(timing, window_start=_moment(met.first), window_end=_moment(met.last))


def _decided_before(node: Node) -> bool:
    """Whether an earlier step decides which events are late."""
    return any(before.judges_lateness or before.windowing is not None or _decided_before(before) for before in node.inputs)


@singledispatch
def spans_of(window: object, moment: int) -> list[Span]:
    """The start and end of every window that contains a moment; a session as if nothing else arrived."""
    spec = windowed(window, Emission((), ()))
    assert isinstance(spec, IntervalSpec)
    start, stop = (bound.item() for bound in spec.layout.bounds(pl.Series([moment], dtype=pl.Int64)))
    return [] if start is None else [(start, stop)]


@spans_of.register
def _(window: Hopping, moment: int) -> list[Span]:
    size, hop, offset = (microseconds(length) for length in (window.size, window.hop, window.offset))
    last = (moment - offset) // hop * hop + offset
    first = ((moment - offset - size) // hop + 1) * hop + offset
    return [(start, start + size) for start in range(first, last + 1, hop)]


@spans_of.register
def _(window: Session, moment: int) -> list[Span]:
    return [(moment, moment + microseconds(window.gap))]


@spans_of.register
def _(window: Sliding, moment: int) -> list[Span]:
    return [(moment - microseconds(window.length), moment)]


@spans_of.register
def _(_: ProcessingTime, moment: int) -> list[Span]:
    return []


@spans_of.register
def _(_: Count, moment: int) -> list[Span]:
    return [(moment, moment)]


def _record(source: Source, watermark: int) -> datetime | None:
    if source.watermark is None or not BEGINNING < watermark < END:
        return None
    return to_datetime(watermark + chosen_bound(source.watermark, None))


def _moment(time: int) -> datetime | None:
    return to_datetime(time) if BEGINNING < time < END else None


def _early(emit: Emit) -> str:
    parts = [f"each time the watermark passes a multiple of {spelled(emit.early)}"] if emit.early is not None else []
    parts += [f"after {emit.every:,} records"] if emit.every is not None else []
    return " and ".join(parts)


def _corrected(emit: Emit) -> str:
    if not emit.until:
        return ""
    how = f"each time the watermark passes a multiple of {spelled(emit.late)}" if emit.late else "at once"
    return f"{how}, {emit.mode}, until the watermark is {spelled(emit.until)} past its end"
