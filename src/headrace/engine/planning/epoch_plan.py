"""The plan of an epoch: the records of each input and the new time, fixed before the epoch runs.

A host stores the plan before anything of the epoch is written, so that a repeated epoch sees exactly the same records and time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from headrace.engine.planning.input import Position
from headrace.engine.planning.quick_epochs import SEVERAL
from headrace.operators.event_time.epoch_time import BEGINNING, EpochTime
from headrace.operators.event_time.watermark import StreamTime

_Held = TypeVar("_Held")


@dataclass(frozen=True)
class Range:
    """Records of one partition of one source."""

    source: str
    partition: int
    first: int
    last: int


@dataclass(frozen=True)
class EpochPlan:
    """An epoch, by its end: positions, watermark and clock once it is done. Epoch 0 is where a job begins.

    Times are in microseconds since 1970.
    """

    epoch: int
    inputs: Mapping[str, str]
    """The identity of each input: another one of the same name is refused."""
    positions: Mapping[str, Position]
    progress: Mapping[str, StreamTime]
    watermark: int = BEGINNING
    idle: bool = False
    """Whether the watermark moved because all streams are silent."""
    clock: int = BEGINNING
    """The wall clock when the epoch was planned; it never goes back."""
    taken_at: int = BEGINNING
    """The wall clock of the last epoch with records."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Event times of each input above its limit are not believed."""
    ended: int = 0
    """The epoch that declared the input complete; 0 if none did."""
    begun: Mapping[str, Position] = field(default_factory=dict)
    """The first offsets of partitions that were not there before: retention may have removed their first records already."""
    snapshots: Mapping[str, Position] = field(default_factory=dict)
    """The ends, when the job first started, of inputs that streams wait for; only those that are not read that far."""
    tasks: str = SEVERAL
    """Whether the epoch runs in one task or in several (`quick_epochs.py`)."""

    def following(self, now: int) -> EpochPlan:
        """The next epoch, with no records and no other watermark."""
        return replace(self, epoch=self.epoch + 1, idle=False, clock=max(self.clock, now), begun={}, tasks=SEVERAL)

    def limited(self, streams: Collection[str]) -> EpochPlan:
        """The same epoch for a version of the app that reads only some of its streams."""

        def kept(held: Mapping[str, _Held]) -> dict[str, _Held]:
            return {name: value for name, value in held.items() if name in streams}

        return replace(
            self, inputs=kept(self.inputs), positions=kept(self.positions), progress=kept(self.progress), limits=kept(self.limits),
            begun=kept(self.begun), snapshots=kept(self.snapshots),
        )  # fmt: skip

    def time(self, before: EpochPlan) -> EpochTime:
        """The time of the epoch that begins where `before` ends."""
        return EpochTime(self.epoch, before.watermark, self.watermark, self.idle, before.clock, self.clock)

    def ranges(self, before: EpochPlan) -> list[Range]:
        """The records of the epoch that begins where `before` ends."""
        return list(self._ranges(before))

    def _ranges(self, before: EpochPlan) -> Iterator[Range]:
        firsts = started(before.positions, self.begun)
        for name, position in self.positions.items():
            for partition, last in position.items():
                first = firsts.get(name, {}).get(partition, 0)
                if last > first:
                    yield Range(name, partition, first, last)

    @property
    def taken(self) -> int:
        """The number of offsets that all inputs have passed."""
        return sum(sum(position.values()) for position in self.positions.values())

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON, where partitions are texts. What is empty in most epochs is left out."""
        rare = {"begun": self.begun, "snapshots": self.snapshots}
        return {
            "epoch": self.epoch,
            "inputs": dict(self.inputs),
            "positions": _texts(self.positions),
            "progress": {name: progress.to_json() for name, progress in self.progress.items()},
            "watermark": self.watermark,
            "idle": self.idle,
            "clock": self.clock,
            "taken_at": self.taken_at,
            "limits": dict(self.limits),
            "ended": self.ended,
            **{name: _texts(positions) for name, positions in rare.items() if positions},
            **({"tasks": self.tasks} if self.tasks else {}),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> EpochPlan:
        return cls(
            epoch=content["epoch"],
            inputs=content["inputs"],
            positions=_numbers(content["positions"]),
            progress={name: StreamTime.from_json(progress) for name, progress in content["progress"].items()},
            watermark=content["watermark"],
            idle=content["idle"],
            clock=content["clock"],
            taken_at=content["taken_at"],
            limits=content["limits"],
            ended=content["ended"],
            begun=_numbers(content.get("begun", {})),
            snapshots=_numbers(content.get("snapshots", {})),
            tasks=content.get("tasks", SEVERAL),
        )


def started(positions: Mapping[str, Position], begun: Mapping[str, Position]) -> dict[str, Position]:
    """The next offset of each partition of each input: where it continues, or begins."""
    return {name: {**begun.get(name, {}), **position} for name, position in positions.items()}


def _texts(positions: Mapping[str, Position]) -> dict[str, dict[str, int]]:
    return {name: {str(partition): offset for partition, offset in sorted(position.items())} for name, position in positions.items()}


def _numbers(positions: Mapping[str, Mapping[str, int]]) -> dict[str, Position]:
    return {name: {int(partition): offset for partition, offset in position.items()} for name, position in positions.items()}
