"""The kinds of faults, by the names under which reports count them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from headrace.core.errors import SettingsError
from headrace.core.failpoint_names import FAILPOINTS

DRIVER, EVERYTHING, WORKER, PAUSE, REPLACED, FAILPOINT = "driver", "everything", "worker", "pause", "replaced", "failpoint"
KINDS = {
    DRIVER: "the driver is killed; Spark and its workers notice",
    EVERYTHING: "driver, Spark and workers are killed at once, as in a power cut",
    WORKER: "one of the Python workers is killed in the middle of its work",
    PAUSE: "the whole job stands still for a few seconds",
    REPLACED: "Spark stands still, its driver dies, a new run continues, and the old one wakes up",
    FAILPOINT: "a process is killed at one step of an epoch, chosen from `headrace failpoints`",
}
# Every job passes these; with the largest hit at which to kill.
POINTS = {
    "job.begin.after": 1, "job.start.before": 1, "job.publish.before": 2, "job.publish.after": 2,
    "source.plan.before": 3, "source.plan.after": 2, "source.read.before": 2, "source.read.after": 2, "source.done.before": 1,
    "sink.write.before": 6, "sink.write.after": 6, "sink.accounting.before": 2, "sink.accounting.after": 2,
    "disk.write.before": 6, "disk.write.after": 6, "disk.sync.before": 6, "disk.sync.after": 6,
}  # fmt: skip


@dataclass(frozen=True)
class ChaosFault:
    """One fault: its kind, and its failpoint, by its rule."""

    kind: str
    rules: str | None = None

    @property
    def meaning(self) -> str:
        """A description of the fault; for a failpoint, what is done and what is not when a process is killed there."""
        point = (self.rules or "").partition("=")[0]
        return FAILPOINTS.get(point, KINDS[self.kind])

    def __str__(self) -> str:
        return f"{self.kind} {self.rules}" if self.rules else self.kind


def drawn(kinds: Sequence[str], seed: int) -> Iterator[ChaosFault]:
    """An endless sequence of faults: each kind once, in some order, then each once more. `failpoint:NAME` means that failpoint only, and
    `failpoint:NAME@2` its second hit.

    >>> [str(fault) for fault, _ in zip(drawn(["worker", "failpoint:sink.write.after@2"], 1), range(2))]
    ['failpoint sink.write.after=kill@2', 'worker']
    """
    for kind in kinds:
        if kind.partition(":")[0] not in KINDS:
            raise SettingsError(f"there is no fault {kind!r}", hint=f"one of {', '.join(KINDS)}, or failpoint:NAME")
    random = Random(f"{seed}/faults")
    while True:
        for kind in random.sample(kinds, len(kinds)):
            yield _fault(*kind.partition(":")[::2], random)


def _fault(kind: str, place: str, random: Random) -> ChaosFault:
    if kind != FAILPOINT:
        return ChaosFault(kind)
    point, _, hit = (place or random.choice(sorted(POINTS))).partition("@")
    return ChaosFault(kind, f"{point}=kill@{hit or random.randint(1, POINTS.get(point, 3))}")
