"""The last stable offset of a partition: every transaction below it has ended, so a range up to it reads the same every time."""

from __future__ import annotations

from headrace.log.files import frame as frames
from headrace.log.files.cursor import OPEN, Outcomes, indexes
from headrace.log.files.partition import Partition
from headrace.log.files.segment import Segment


def settled_before(partition: Partition, moment: int) -> int:
    """An offset below which every record was appended before a moment, or compacted: read from the last segments only."""
    state = partition.state()
    for base in reversed(partition.segments(state)):
        segment = Segment(partition.disk, partition.directory, base)
        entries = segment.index(state.visible_position if base == state.segment else segment.size)
        if len(entries) and (entries["flags"][-1] & frames.OFFSETS or int(entries["appended_at"].max()) < moment):
            return int(entries["next"][-1])
    return state.start


def stable_end(partition: Partition, outcomes: Outcomes, since: int = 0) -> int:
    """The first offset from `since` on whose transaction is open; the end of the visible records if there is none."""
    state = partition.state()
    if since >= state.visible:
        return state.visible
    for segment, entries in indexes(partition, max(since, state.start), state.visible):
        fresh = entries[(entries["next"] > since) & (entries["base"] < state.visible)]
        for entry in fresh[(fresh["flags"] & frames.TRANSACTIONAL) != 0]:
            if outcomes.of(segment.frame_at(int(entry["position"]), segment.size)) == OPEN:
                return max(since, int(entry["base"]))
    return state.visible
