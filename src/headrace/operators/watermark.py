"""How far event time has come in a stream: the minimum over its partitions, as a value that travels in the source's offset.

Everything here is a pure function of what came and of the recorded wall clock, so that a replay makes the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from headrace.operators.time import BEGINNING
from headrace.plan.watermarks import Watermark

Closing = Callable[[int], int]


@dataclass(frozen=True)
class Reach:
    """What is known of one partition: its latest event time, and when (wall clock) records last came from it."""

    latest: int
    seen_at: int


@dataclass(frozen=True)
class Progress:
    """The event time of one stream. A partition that never had a record holds nobody back."""

    partitions: Mapping[int, Reach] = field(default_factory=dict)
    watermark: int = BEGINNING
    idle: bool = False

    def observe(self, latest: Mapping[int, int], now: int) -> Progress:
        """After records came: the latest event time by partition (those without a record are left out)."""
        seen = dict(self.partitions)
        for partition, time in latest.items():
            before = seen.get(partition)
            seen[partition] = Reach(time if before is None else max(before.latest, time), now)
        return replace(self, partitions=seen)

    def advance(self, rule: Watermark, now: int, closing: Closing) -> Progress:
        """Move the watermark: never back, and past every window when the whole stream has been silent for `idle`.

        `closing` tells the end of the last window that a time is in.
        """
        if not self.partitions:
            return self
        patience = None if rule.idle is None else rule.idle // timedelta(microseconds=1)
        awake = [reach for reach in self.partitions.values() if patience is None or now - reach.seen_at < patience]
        if awake:
            moved = min(reach.latest for reach in awake) - rule.delay // timedelta(microseconds=1)
        else:
            moved = closing(max(reach.latest for reach in self.partitions.values()))
        return replace(self, watermark=max(self.watermark, moved), idle=not awake and moved > self.watermark)

    def to_json(self) -> dict[str, object]:
        reaches = {str(partition): [reach.latest, reach.seen_at] for partition, reach in self.partitions.items()}
        return {"partitions": reaches, "watermark": self.watermark, "idle": self.idle}

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> Progress:
        reaches = content["partitions"]
        assert isinstance(reaches, Mapping)
        watermark = content["watermark"]
        assert isinstance(watermark, int)
        return cls({int(partition): Reach(*reach) for partition, reach in reaches.items()}, watermark, bool(content["idle"]))
