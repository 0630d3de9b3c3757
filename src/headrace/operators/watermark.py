"""How far event time has come in a stream: the minimum over its partitions, as a value that travels in the source's offset.

Everything here is a pure function of what came and of the recorded wall clock, so that a replay makes the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

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
            seen[partition] = Reach(time if before is None else max(before.latest, time), now)
        return replace(self, partitions=seen, began_at=now if self.began_at is None else self.began_at)

    def advance(self, rule: Watermark, now: int, closing: Closing) -> Progress:
        """Move the watermark: never back, and past every window when the whole stream has been silent for `idle`.

        `closing` tells the end of the last window that a time is in.
        """
        patience = None if rule.idle is None else rule.idle // timedelta(microseconds=1)
        if not self.partitions:
            return replace(self, asleep=patience is not None and self.began_at is not None and now - self.began_at >= patience)
        awake = [reach for reach in self.partitions.values() if patience is None or now - reach.seen_at < patience]
        if awake:
            moved = min(reach.latest for reach in awake) - rule.delay // timedelta(microseconds=1)
        else:
            moved = closing(max(reach.latest for reach in self.partitions.values()))
        return replace(self, watermark=max(self.watermark, moved), asleep=not awake)

    def to_json(self) -> dict[str, object]:
        reaches = {str(partition): [reach.latest, reach.seen_at] for partition, reach in self.partitions.items()}
        return {"partitions": reaches, "watermark": self.watermark, "began_at": self.began_at, "asleep": self.asleep}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Progress:
        reaches = {int(partition): Reach(*reach) for partition, reach in content["partitions"].items()}
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
