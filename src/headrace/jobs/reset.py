"""Reset of a job: what is removed, what stays, and in which order."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.jobs.directory import JobDirectory
from headrace.jobs.start.outputs import has_topic, topics_of
from headrace.log import Log
from headrace.plan.plan import Plan
from headrace.plan.topics import accounting_topic


@dataclass(frozen=True)
class ResetPart:
    """The state of a job, or something that it writes: whether it goes, and why not."""

    kind: str
    name: str
    holds: str
    goes: bool = True
    why: str = ""


def parts_of(plan: Plan, place: JobDirectory, log: Log | None, *, sinks: bool) -> Iterator[ResetPart]:
    """All parts that a reset of a plan's job considers; topics of its sinks go only with `sinks`."""
    if place.record() is not None or place.checkpoint.exists():
        yield ResetPart("state", str(place.path), f"epoch {place.committed_epoch():,}")
    for name, kind in _topics(plan, place).items():
        if log is not None and has_topic(log, name):
            records = sum(part["end"] - part["start"] for part in log.describe(name)["partitions"])
            yield _topic(kind, name, f"{records:,} records", place, sinks=sinks)
    for sink in plan.sinks:
        if sink.topic is None:
            again = "every record is written again" if not sink.folds_by else "its rows are replaced as they come"
            yield ResetPart("sink", str(sink.target), "", goes=False, why=f"it is not in this home; {again}")


def remove(parts: list[ResetPart], place: JobDirectory, log: Log | None) -> None:
    """Remove the parts that go. Only the holder of the job may do so.

    A crash midway leaves a job that does not start, and that can be reset again: while it has a record, the accounting without a
    checkpoint is refused.
    """
    shutil.rmtree(place.checkpoint, ignore_errors=True)
    topics = [part.name for part in parts if part.goes and part.kind != "state"]
    for name in sorted(topics, key=lambda name: name == accounting_topic(place.name)):
        if log is not None and has_topic(log, name):
            log.delete_topic(name)
    for file in sorted(place.path.iterdir(), key=lambda file: file.name == "job.json"):
        # A process that waits for the job waits for this very file.
        if file.name != "lock":
            shutil.rmtree(file) if file.is_dir() else file.unlink()


def _topics(plan: Plan, place: JobDirectory) -> Mapping[str, str]:
    """The topics that the job has written, by its own record: the app may have changed since then."""
    record = place.record()
    return record.topics if record is not None and record.topics else {topic.name: topic.kind for topic in topics_of(plan)}


def _topic(kind: str, name: str, holds: str, place: JobDirectory, *, sinks: bool) -> ResetPart:
    others = [(other.name, as_) for other in place.others() if (as_ := other.kinds().get(name)) is not None]
    if others:
        owner, as_ = others[0]
        return ResetPart(
            kind, name, holds, goes=False, why=f"it is a {as_} of app {owner!r}{', too' if place.record() is not None else ''}"
        )
    if kind == "sink" and not sinks:
        return ResetPart(kind, name, holds, goes=False, why="--sinks removes it, too")
    return ResetPart(kind, name, holds)
