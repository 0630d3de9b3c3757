"""The planner of epochs: the records that the next epoch takes from each stream, and how far event time advances with it.

A plan depends only on the previous plan, on the inputs and on the wall clock. Every host has the same planner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from headrace.core.durations import microseconds
from headrace.engine.planning.alignment import Standing, aligned
from headrace.engine.planning.continuity import check_ends, check_identities, identities
from headrace.engine.planning.epoch_plan import EpochPlan, started
from headrace.engine.planning.input import Ahead, Input, Position
from headrace.engine.planning.observed_lateness import Times
from headrace.engine.planning.snapshot_waits import awaited_snapshots, unread, waiting_streams
from headrace.operators.event_time.epoch_time import END, LATEST
from headrace.operators.event_time.watermark import StreamTime, overall_watermark
from headrace.plan.source_time import EventTime
from headrace.plan.waits import Waits
from headrace.plan.watermarks import LossBudget, Watermark

Ends = Mapping[str, Position]


class Timetable(Protocol):
    """The parts of a program that the planner uses."""

    def closing(self, moment: int) -> int:
        """The end of the last window that a moment is in."""
        ...

    def due(self, before: int, clock: int, taken_at: int) -> bool:
        """Whether a window of the wall clock that may have records has ended since a moment."""
        ...


@dataclass(frozen=True)
class PlannedStream:
    """A stream of a job: its input, and its event time."""

    source: Input
    watermark: Watermark | None = None
    time: EventTime | None = None
    align: int | None = None
    """By how much event time it may be read ahead of the slowest other one, in microseconds."""

    def limit(self, now: int) -> int:
        """Event times above this are not believed."""
        return LATEST if self.watermark is None else min(LATEST, now + microseconds(self.watermark.max_ahead))


@dataclass(frozen=True)
class Planner:
    """Plans the epochs of a job; `until` is what a run does after the last record: `flushed`, `end`, or nothing more."""

    job: str
    streams: Mapping[str, PlannedStream]
    timetable: Timetable
    waits: Waits
    """The streams that are not read before others are read to where they were when the job first started."""
    until: str | None = None
    begins: int = 0
    """An epoch that is run in any case, because outputs begin in it with a snapshot."""

    @cached_property
    def inputs(self) -> dict[str, Input]:
        return {name: stream.source for name, stream in self.streams.items()}

    def first(self) -> EpochPlan:
        """The plan before the first epoch of a new job."""
        return EpochPlan(
            epoch=0,
            inputs=identities(self.inputs),
            positions={name: source.beginning() for name, source in self.inputs.items()},
            progress={name: StreamTime() for name in self.inputs},
            limits=dict.fromkeys(self.inputs, LATEST),
        )

    def ends(self) -> Ends:
        """The end of each stream that can be read now."""
        return {name: source.end() for name, source in self.inputs.items()}

    def check(self, plan: EpochPlan) -> None:
        """Raise if an input is not the one that an epoch was planned with."""
        check_identities(self.job, self.inputs, plan.inputs)

    def next(self, before: EpochPlan, now: int, rows: int | None = None, ends: Ends | None = None) -> EpochPlan:
        """The epoch after another, or that one itself if there is nothing to do.

        At most about `rows` records of each stream; with `ends` nothing follows them, as in a run over the present records.
        """
        plan = self.taken(before, now, rows, ends)
        moved = plan.positions != before.positions
        if not moved and self.until == "flushed":
            plan = self.flushed(plan, before)
        if not moved and self.until == "end" and not before.ended:
            plan = self.ended(plan)
        due = self.timetable.due(before.clock, plan.clock, before.taken_at)
        # Spark runs a first batch in any case. It is epoch 1, without records if there are none: batch and epoch numbers stay one apart.
        begins = before.epoch == 0 or before.epoch + 1 == self.begins
        worth = begins or moved or due or plan.watermark != before.watermark or plan.ended != before.ended
        return plan if worth else before

    def taken(self, before: EpochPlan, now: int, rows: int | None = None, ends: Ends | None = None) -> EpochPlan:
        """The epoch after another, with the present records, if there are any."""
        found = self.ends() if ends is None else ends
        # After the ends: they belong to these very inputs.
        self.check(before)
        check_ends(self.inputs, before.positions, found)
        begun = self._begun(before, found)
        known = replace(before, positions=started(before.positions, begun))
        snapshots = awaited_snapshots(self.waits, known, found)
        waiting = waiting_streams(self.waits, snapshots)
        readable = self._aligned(known, {name: end for name, end in found.items() if name not in waiting}, now, complete=ends is not None)
        ahead = {name: self._ahead(name, known, end, rows, now) for name, end in readable.items()}
        # The event time of a stream that waits does not advance: it is not silent, its records are not read.
        progress = {**before.progress, **{name: self._progress(name, known, found, now) for name, found in ahead.items()}}
        positions = {name: ahead[name].position if name in ahead else position for name, position in known.positions.items()}
        watermark, idle = overall_watermark(self._timed(progress), before.watermark)
        clock = max(before.clock, now)
        return replace(
            before.following(now),
            positions=positions,
            progress=progress,
            watermark=watermark,
            idle=idle,
            taken_at=clock if positions != before.positions else before.taken_at,
            limits={name: stream.limit(now) for name, stream in self.streams.items()},
            begun=begun,
            snapshots=unread(snapshots, positions),
        )

    def flushed(self, plan: EpochPlan, before: EpochPlan) -> EpochPlan:
        """An epoch without records, in which every open window closes.

        The state of each stream's event time stays, so that a repeated run moves the watermark no further.
        """
        streams = [progress.flush(self.timetable.closing) for progress in self._timed(plan.progress)]
        watermark, idle = overall_watermark(streams, before.watermark)
        return replace(plan, watermark=watermark, idle=idle)

    def ended(self, plan: EpochPlan) -> EpochPlan:
        """An epoch that declares the input complete."""
        return replace(plan, watermark=END, idle=False, ended=plan.ended or plan.epoch)

    def _timed(self, progress: Mapping[str, StreamTime]) -> list[StreamTime]:
        return [reach for name, reach in progress.items() if self.streams[name].watermark is not None]

    def _begun(self, before: EpochPlan, ends: Ends) -> dict[str, Position]:
        fresh = {name: [partition for partition in end if partition not in before.positions[name]] for name, end in ends.items()}
        return {name: self.inputs[name].earliest(partitions) for name, partitions in fresh.items() if partitions}

    def _aligned(self, known: EpochPlan, ends: dict[str, Position], now: int, *, complete: bool) -> dict[str, Position]:
        """How far each stream may be read in an epoch."""
        bounds = {name: bound for name in ends if (bound := self.streams[name].align) is not None}
        if not bounds:
            return ends
        standings = {
            name: Standing(stream.source, known.positions[name], end, known.progress[name], rule, stream.limit(now), complete=complete)
            for name, end in ends.items()
            if (rule := (stream := self.streams[name]).watermark) is not None
        }
        return {**ends, **aligned(standings, bounds, now)}

    def _ahead(self, name: str, known: EpochPlan, end: Position, rows: int | None, now: int) -> Ahead:
        stream = self.streams[name]
        return stream.source.ahead(known.positions[name], end, rows, stream.limit(now))

    def _progress(self, name: str, known: EpochPlan, ahead: Ahead, now: int) -> StreamTime:
        """The event time of a stream once the next records are taken in."""
        stream, before = self.streams[name], known.progress[name]
        rule, seen = stream.watermark, before.observe(ahead.latest, now)
        if isinstance(rule, LossBudget) and stream.time is not None:
            times = Times(stream.source, stream.time, stream.limit(now))
            seen = seen.learn(rule, times.lateness_ahead(known.positions[name], ahead.position, before))
        return seen if rule is None else seen.advance(rule, now, self.timetable.closing)
