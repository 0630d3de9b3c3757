"""Streams that wait for tables: a stream is not read before a table is read up to its end when the job first started.

Otherwise, rows of the stream would meet a table that lacks rows from before the job.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.planning.input import Position
from headrace.plan.waits import Waits


def awaited_snapshots(waits: Waits, before: EpochPlan, ends: Mapping[str, Position]) -> dict[str, Position]:
    """The end of each awaited table when the job first started; only those that are not yet reached."""
    if before.epoch:
        return dict(before.snapshots)
    awaited = {name for names in waits.values() for name in names}
    return unread({name: ends[name] for name in ends if name in awaited}, before.positions)


def unread(snapshots: Mapping[str, Position], positions: Mapping[str, Position]) -> dict[str, Position]:
    """The snapshots that some positions have not reached."""
    return {name: snapshot for name, snapshot in snapshots.items() if not _reached(snapshot, positions[name])}


def waiting_streams(waits: Waits, snapshots: Mapping[str, Position]) -> frozenset[str]:
    """The streams that are not read while these snapshots are not."""
    return frozenset(stream for stream, awaited in waits.items() if awaited & snapshots.keys())


def _reached(snapshot: Position, position: Position) -> bool:
    return all(position.get(partition, 0) >= offset for partition, offset in snapshot.items())
