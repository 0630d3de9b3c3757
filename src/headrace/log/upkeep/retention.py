"""Retention: removal of whole closed segments from the front of a partition, by age, by size, or because their records were deleted.

As in Kafka, the age of a segment is that of its latest event time, or of its last append if its records have none. `retention.bytes` is a
lower bound, so that a partition has up to one segment more.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from headrace.log.files import frame as frames
from headrace.log.files.cursor import out_of_range
from headrace.log.files.head import PartitionState
from headrace.log.files.partition import Partition
from headrace.log.files.segment import INDEX_SUFFIX, WRITERS_SUFFIX, Segment, segment_path

LEARNED_SUFFIX = ".learned"


@dataclass(frozen=True)
class Removed:
    """The number of segments and bytes removed from a partition, and its first offset now."""

    segments: int
    bytes: int
    start: int


def apply_retention(partition: Partition) -> Removed:
    """Remove the segments that the topic's settings no longer keep. Called under the partition's maintenance lock."""
    if "delete" in partition.topic.config.cleanup_policy:
        state = partition.state()
        kept = _first_kept(partition, state)
        if kept is None:
            # Offsets continue: the new, empty segment is named by the next one.
            partition.roll()
            state = partition.state()
            kept = _first_kept(partition, state)
        partition.raise_start(state.segment if kept is None else kept)
    return remove_below_start(partition)


def delete_before(partition: Partition, offset: int) -> Removed:
    """Make records before `offset` unreadable, durably; their bytes are removed with their segments. Called under the maintenance lock."""
    state = partition.state()
    if not 0 <= offset <= state.visible:
        raise out_of_range(partition, offset, state)
    partition.raise_start(offset)
    return remove_below_start(partition)


def remove_below_start(partition: Partition) -> Removed:
    """Remove the segments that have no readable record."""
    if partition.state().start >= partition.state().written:
        partition.roll()
    state = partition.state()
    bases = partition.segments(state)
    gone = [base for base, until in itertools.pairwise(bases) if until <= state.start]
    size = sum(partition.disk.size(segment_path(partition.directory, base)) for base in gone)
    for base in gone:
        remove_segment(partition, base)
    if gone:
        partition.disk.sync_directory(partition.directory)
    return Removed(len(gone), size, state.start)


def remove_segment(partition: Partition, base: int) -> None:
    """Remove the files of a closed segment; readers that have it open continue with it."""
    path = segment_path(partition.directory, base)
    for gone in (path, *(path.with_suffix(suffix) for suffix in (INDEX_SUFFIX, WRITERS_SUFFIX, LEARNED_SUFFIX))):
        partition.disk.remove(gone)


def _first_kept(partition: Partition, state: PartitionState) -> int | None:
    """The first segment that has not expired; None if all have, including the active one."""
    config = partition.topic.config
    bases = partition.segments(state)
    sizes = [partition.disk.size(segment_path(partition.directory, base)) for base in bases]
    excess = sum(sizes) - config.retention_bytes if config.retention_bytes >= 0 else -1
    oldest = partition.clock.now() - config.retention_ms * 1000 if config.retention_ms >= 0 else None
    for base, size in zip(bases, sizes, strict=True):
        excess -= size
        active = base == state.segment
        if (active and not state.entries) or not (excess >= 0 or (oldest is not None and _latest(partition, base, state) < oldest)):
            return base
    return None


def _latest(partition: Partition, base: int, state: PartitionState) -> int:
    """The time from which a segment's age is counted."""
    segment = Segment(partition.disk, partition.directory, base)
    entries = segment.index(state.position if base == state.segment else segment.size)
    times = entries["max_time"]
    dated = times[times != frames.NO_TIME]
    found = dated if len(dated) else entries["appended_at"]
    return int(found.max()) if len(found) else np.iinfo(np.int64).min
