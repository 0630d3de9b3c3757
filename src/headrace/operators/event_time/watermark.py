"""The watermark of a stream: the minimum over its partitions, as a value that travels in the source's offset.

Everything here is a pure function of the records and of the recorded wall clock, so that a replay makes the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.core.durations import microseconds
from headrace.operators.event_time.epoch_time import BEGINNING
from headrace.operators.event_time.lateness_histogram import Lateness, chosen_bound, remembered
from headrace.plan.watermarks import LossBudget, Watermark

Closing = Callable[[int], int]


@dataclass(frozen=True)
class Reach:
    """The state of one partition: its latest event time, the wall clock of its last records, and their lateness.

    Lateness is observed only where the watermark follows from it.
    """

    latest: int
    seen_at: int
    lateness: Lateness | None = None

    def to_json(self) -> list[Any]:
        return [self.latest, self.seen_at] if self.lateness is None else [self.latest, self.seen_at, self.lateness.to_json()]

    @classmethod
    def from_json(cls, content: Sequence[Any]) -> Reach:
        latest, seen_at, *lateness = content
        return cls(latest, seen_at, Lateness.from_json(lateness[0]) if lateness else None)


@dataclass(frozen=True)
class StreamTime:
    """The event time of one stream. A partition that never had a record does not hold it back.

    `began_at` is the wall clock when the stream was first read; `asleep`: all of it has been silent for `idle`.
    """

    partitions: Mapping[int, Reach] = field(default_factory=dict)
    watermark: int = BEGINNING
    began_at: int | None = None
    asleep: bool = False

    def observe(self, latest: Mapping[int, int], now: int) -> StreamTime:
        """After records came: the latest event time by partition (those without a record are left out)."""
        seen = dict(self.partitions)
        for partition, time in latest.items():
            before = seen.get(partition)
            seen[partition] = Reach(time, now) if before is None else replace(before, latest=max(before.latest, time), seen_at=now)
        return replace(self, partitions=seen, began_at=now if self.began_at is None else self.began_at)

    def learn(self, rule: LossBudget, lateness: Mapping[int, Lateness]) -> StreamTime:
        """After records came and were observed: their lateness by partition."""
        learned = {
            partition: replace(reach, lateness=remembered(rule, reach.lateness, lateness[partition]))
            for partition, reach in self.partitions.items()
            if partition in lateness
        }
        return replace(self, partitions={**self.partitions, **learned})

    def bounds(self, rule: Watermark) -> dict[int, int]:
        """The distance of the watermark from the latest record of each partition, in microseconds."""
        return {partition: chosen_bound(rule, reach.lateness) for partition, reach in self.partitions.items()}

    def advance(self, rule: Watermark, now: int, closing: Closing) -> StreamTime:
        """Move the watermark: never back, and past every window when the whole stream has been silent for `idle`.

        `closing` returns the end of the last window that contains a time.
        """
        if not self.partitions:
            return replace(self, asleep=self.began_at is not None and silent(rule, self.began_at, now))
        awake = [reach for reach in self.partitions.values() if not silent(rule, reach.seen_at, now)]
        if awake:
            moved = min(reach.latest - chosen_bound(rule, reach.lateness) for reach in awake)
        else:
            moved = closing(max(reach.latest for reach in self.partitions.values()))
        return replace(self, watermark=max(self.watermark, moved), asleep=not awake)

    def flush(self, closing: Closing) -> StreamTime:
        """Move the watermark past every window that has records, as if the whole stream had been silent for `idle`."""
        moved = [closing(reach.latest) for reach in self.partitions.values()]
        return replace(self, watermark=max([self.watermark, *moved]), asleep=True)

    def to_json(self) -> dict[str, object]:
        reaches = {str(partition): reach.to_json() for partition, reach in self.partitions.items()}
        return {"partitions": reaches, "watermark": self.watermark, "began_at": self.began_at, "asleep": self.asleep}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> StreamTime:
        reaches = {int(partition): Reach.from_json(reach) for partition, reach in content["partitions"].items()}
        return cls(reaches, content["watermark"], content["began_at"], content["asleep"])


@dataclass(frozen=True)
class Holder:
    """The stream, and the partition of it, that the watermark waits for; no partition where the stream had no record yet."""

    stream: str
    partition: int | None

    def __str__(self) -> str:
        return f"{self.stream}, no record yet" if self.partition is None else f"{self.stream}/{self.partition}"


def held_by(streams: Mapping[str, StreamTime], rules: Mapping[str, Watermark | None], now: int) -> Holder | None:
    """The stream and partition with the minimum that the watermark follows; None where all are silent, or nothing has a watermark."""
    awake = {name: stream for name, stream in streams.items() if rules.get(name) is not None and not stream.asleep}
    if not awake:
        return None
    name = min(awake, key=lambda name: awake[name].watermark)
    rule = rules[name]
    assert rule is not None
    stream, bounds = awake[name], awake[name].bounds(rule)
    marks = {
        partition: reach.latest - bounds[partition]
        for partition, reach in stream.partitions.items()
        if not silent(rule, reach.seen_at, now)
    }
    return Holder(name, min(marks, key=lambda partition: marks[partition]) if marks else None)


def overall_watermark(streams: Collection[StreamTime], before: int) -> tuple[int, bool]:
    """The event time of an app, and whether it moved because all its streams are silent.

    It is the minimum over the streams that are not asleep; when all are asleep, none is waited for.
    """
    awake = [stream.watermark for stream in streams if not stream.asleep]
    if awake:
        return max(before, min(awake)), False
    moved = max([before, *(stream.watermark for stream in streams)])
    return moved, moved > before


def silent(rule: Watermark, since: int, now: int) -> bool:
    """Whether `idle` of the wall clock has passed since the last records."""
    return rule.idle is not None and now - since >= microseconds(rule.idle)
