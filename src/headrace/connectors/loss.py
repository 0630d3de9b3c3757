"""Errors of connectors whose system no longer has the records of an epoch: each says how many are gone, and what to do."""

from __future__ import annotations

from headrace.engine.planning.input_loss import ANEW, InputLost, counted, shrunk

__all__ = ["InputLost", "lost", "removed", "shrunk"]


def removed(label: str, partition: int, first: int, last: int) -> InputLost:
    """Retention took records before the job had read them."""
    return InputLost(
        _gone(label, partition, first, last),
        why="retention removed them before an epoch with them was done",
        hint=f"keep records for longer (retention.ms, retention.bytes), then {ANEW}",
    )


def lost(label: str, partition: int, first: int, last: int) -> InputLost:
    """An epoch was planned with records that are not there any more."""
    return InputLost(
        _gone(label, partition, first, last),
        why="they were there when the epoch was planned: the system lost data, or was set back to an earlier state",
        hint=f"bring them back from a copy, or {ANEW}",
    )


def _gone(label: str, partition: int, first: int, last: int) -> str:
    return f"{counted(last - first)} from offset {first} to {last - 1} of partition {partition} of {label} are gone"
