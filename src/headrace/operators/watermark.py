"""How far event time has come in a stream: the minimum over its partitions, as a value that travels in the source's offset.

Everything here is a pure function of what came and of the recorded wall clock, so that a replay makes the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from headrace.operators.disorder import Lateness, chosen_bound, remembered
from headrace.operators.time import BEGINNING
from headrace.plan.watermarks import LossBudget, Watermark

Closing = Callable[[int], int]


@dataclass(frozen=True)
class Reach:
    """What is known of one partition: its latest event time, when (wall clock) records last came from it, and how late they were.

    The last is learned only where the watermark follows from it.
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
class Progress:
    """The event time of one stream. A partition that never had a record holds nobody back.

    `began_at` is the wall clock when the stream was first looked at; `asleep`: all of it has been silent for `idle`.
    """

    partitions: Mapping[int, Reach] = field(default_factory=dict)
    watermark: int = BEGINNING
    began_at: int | None = None
    asleep: bool = False

    def observe(self, latest: Mapping[int, int], now: int) -> Progress:
        """After records came: the latest event time by partition (those without a record are left out)."""
        seen = dict(self.partitions)
        for partition, time in latest.items():
            before = seen.get(partition)
            seen[partition] = Reach(time, now) if before is None else replace(before, latest=max(before.latest, time), seen_at=now)
        return replace(self, partitions=seen, began_at=now if self.began_at is None else self.began_at)

    def learn(self, rule: LossBudget, lateness: Mapping[int, Lateness]) -> Progress:
        """After records came and were observed: how late they were, by partition."""
        learned = {
            partition: replace(reach, lateness=remembered(rule, reach.lateness, lateness[partition]))
            for partition, reach in self.partitions.items()
            if partition in lateness
        }
        return replace(self, partitions={**self.partitions, **learned})

    def bounds(self, rule: Watermark) -> dict[int, int]:
        """How far the watermark stays behind the latest record of each partition, in microseconds."""
        return {partition: chosen_bound(rule, reach.lateness) for partition, reach in self.partitions.items()}

    def advance(self, rule: Watermark, now: int, closing: Closing) -> Progress:
        """Move the watermark: never back, and past every window when the whole stream has been silent for `idle`.

        `closing` tells the end of the last window that a time is in.
        """
        patience = None if rule.idle is None else rule.idle // timedelta(microseconds=1)
        if not self.partitions:
            return replace(self, asleep=patience is not None and self.began_at is not None and now - self.began_at >= patience)
        awake = [reach for reach in self.partitions.values() if patience is None or now - reach.seen_at < patience]
        if awake:
            moved = min(reach.latest - chosen_bound(rule, reach.lateness) for reach in awake)
        else:
            moved = closing(max(reach.latest for reach in self.partitions.values()))
        return replace(self, watermark=max(self.watermark, moved), asleep=not awake)

    def to_json(self) -> dict[str, object]:
        reaches = {str(partition): reach.to_json() for partition, reach in self.partitions.items()}
        return {"partitions": reaches, "watermark": self.watermark, "began_at": self.began_at, "asleep": self.asleep}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Progress:
        reaches = {int(partition): Reach.from_json(reach) for partition, reach in content["partitions"].items()}
        return cls(reaches, content["watermark"], content["began_at"], content["asleep"])


def united(streams: Collection[Progress], before: int) -> tuple[int, bool]:
    """The event time of an app, and whether it moved because all its streams are silent.

    It is the minimum over the streams that are not asleep; when all are, nobody is waited for.
    """
    awake = [stream.watermark for stream in streams if not stream.asleep]
    if awake:
        return max(before, min(awake)), False
    moved = max([before, *(stream.watermark for stream in streams)])
    return moved, moved > before
