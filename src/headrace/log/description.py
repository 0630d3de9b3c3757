"""The description of a topic: its declaration, and the size of each of its partitions."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from headrace.core.errors import LogError
from headrace.log.files.cursor import max_event_time
from headrace.log.files.partition import Partition
from headrace.log.files.segment import segment_path
from headrace.log.topic import Topic

# The number of newest records that are searched for the latest event time: one or two segments, whatever the size of the topic.
_NEWEST = 100_000


def described(topic: Topic, partitions: Iterable[Partition]) -> dict[str, Any]:
    """A topic's declaration, and for each partition its offsets, bytes, segments and the latest event time of its newest records."""
    return {
        "name": topic.name,
        "columns": topic.columns,
        "key": list(topic.key),
        "time": topic.time,
        "config": topic.config.settings(),
        "partitions": [_partition(partition) for partition in partitions],
    }


def _partition(partition: Partition) -> dict[str, Any]:
    state = partition.state()
    sizes = _sizes(partition)
    return {
        "partition": partition.index, "start": state.start, "end": state.visible, "segments": len(sizes), "bytes": sum(sizes),
        "max_event_time": max_event_time(partition, max(state.start, state.visible - _NEWEST), state.visible),
    }  # fmt: skip


def _sizes(partition: Partition) -> list[int]:
    """The bytes of each segment. Maintenance may remove one between listing the directory and reading the file's size."""
    for _ in range(100):
        with suppress(FileNotFoundError):
            return [partition.disk.size(segment_path(partition.directory, base)) for base in partition.segments(partition.state())]
    raise LogError(f"the segments of {partition.directory} changed 100 times while they were counted", hint="try again")
