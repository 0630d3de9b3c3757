"""The faults that chaos knows, by the names under which its reports count them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from headrace.core.errors import SettingsError

DRIVER, EVERYTHING, WORKER, PAUSE, REPLACED, FAILPOINT = "driver", "everything", "worker", "pause", "replaced", "failpoint"
KINDS = {
    DRIVER: "the driver is killed; Spark and its workers notice",
    EVERYTHING: "driver, Spark and workers are killed at once, as in a power cut",
    WORKER: "one of the Python workers is killed amid its work",
    PAUSE: "nothing of the job goes on for a few seconds",
    REPLACED: "Spark stands still, its driver dies, a new run goes on, and the old one wakes up",
    FAILPOINT: "a process is killed at one step of an epoch, chosen from `headrace failpoints`",
}
# Every job passes these; with the largest hit at which to kill.
POINTS = {
    "job.begin.after": 1, "job.start.before": 1, "job.publish.before": 2, "job.publish.after": 2,
    "source.plan.before": 3, "source.plan.after": 2, "source.read.before": 2, "source.read.after": 2, "source.done.before": 2,
    "sink.write.before": 6, "sink.write.after": 6, "sink.accounting.before": 2, "sink.accounting.after": 2,
    "disk.write.before": 6, "disk.write.after": 6, "disk.sync.before": 6, "disk.sync.after": 6,
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One fault to come: its kind, and at which failpoint, by its rule."""

    kind: str
    rules: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.rules}" if self.rules else self.kind


def drawn(kinds: tuple[str, ...], random: Random) -> Fault:
    """The next fault; `failpoint:NAME` among the kinds means that failpoint only."""
    kind, _, point = random.choice(kinds).partition(":")
    if kind not in KINDS:
        raise SettingsError(f"there is no fault {kind!r}", hint=f"one of {', '.join(KINDS)}, or failpoint:NAME")
    if kind != FAILPOINT:
        return Fault(kind)
    point = point or random.choice(sorted(POINTS))
    return Fault(kind, f"{point}=kill@{random.randint(1, POINTS.get(point, 3))}")
