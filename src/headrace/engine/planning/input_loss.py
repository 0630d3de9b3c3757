"""Errors of inputs that are no longer what a job's position refers to: each says how many records are lost, and what to do."""

from __future__ import annotations

from headrace.core.errors import ConnectorError

ANEW = "start the job from the beginning: headrace reset app.py, or give the app another name"


class InputLost(ConnectorError):
    """An input does not have records that a job is to read, or had read. Another attempt finds the same."""


def shrunk(label: str, partition: int, end: int, position: int) -> InputLost:
    """A partition ends before the position of the job."""
    return InputLost(
        f"partition {partition} of {label} ends at offset {end}, and the job has read up to {position}: {counted(position - end)} gone",
        why="the system lost data or was set back: new records would take offsets that the job has passed",
        hint=f"if this was a temporary error, start the job again; else bring the records back from a copy, or {ANEW}",
    )


def without_partition(label: str, partition: int, position: int) -> InputLost:
    """A partition that the job has read no longer exists."""
    return InputLost(
        f"{label} has no partition {partition}, of which the job has read {counted(position)}",
        why="the system lost data, or the stream was created again with fewer partitions",
        hint=f"if this was a temporary error, start the job again; else {ANEW}",
    )


def another(label: str, job: str, known: str, found: str) -> InputLost:
    """A stream of the same name replaced the one that the job has read."""
    return InputLost(
        f"{label} is not the one that job {job!r} has read: its id is {found}, and was {known}",
        why="it was deleted and created again: the job's position is meaningless in it, and records would be skipped",
        hint=ANEW,
    )


def counted(count: int) -> str:
    """A number of records, in words."""
    return f"{count:,} record{'' if count == 1 else 's'}"
