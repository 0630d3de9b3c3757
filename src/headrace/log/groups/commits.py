"""Commits of a group before they are stored: offsets checked against the log, as rows of the offsets topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from headrace.core.errors import LogError
from headrace.log.errors import OffsetOutOfRange, TransactionState
from headrace.log.groups import offsets as committed
from headrace.log.groups.assignment import TopicPartition
from headrace.log.groups.group import Membership
from headrace.log.storage import Storage


@dataclass(frozen=True)
class Commit:
    """For a group, the next offset to process in each partition."""

    group: str
    offsets: Mapping[TopicPartition, int]
    generation: int = 0
    metadata: str = ""

    def rows(self, storage: Storage) -> pa.Table:
        """The rows to store; raises if an offset is neither in the log nor the next one."""
        now = storage.clock.now()
        rows = [
            {"group": self.group, "topic": topic, "partition": index, "topic_id": _topic_id(storage, topic, index, offset),
             "offset": offset, "metadata": self.metadata, "committed_at": now, "generation": self.generation}
            for (topic, index), offset in sorted(self.offsets.items())
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, committed.TOPIC.columns)


def commit_of(group: str | Membership, offsets: Mapping[TopicPartition, int] | None) -> Commit:
    """A commit for a group, or for a member, with its positions unless others are given."""
    if isinstance(group, str):
        if offsets is None:
            raise LogError(f"no offsets are given for group {group!r}", hint="give them, or the consumer whose positions are meant")
        return Commit(group, dict(offsets))
    if group.auto_commit:
        raise TransactionState(
            f"this member of group {group.group!r} commits by itself, outside of the transaction",
            why="offsets would take effect although the transaction is aborted",
            hint="make the consumer with auto_commit=False",
        )
    return Commit(group.group, group.positions() if offsets is None else dict(offsets), group.generation)


def _topic_id(storage: Storage, topic: str, index: int, offset: int) -> str:
    declared = storage.topic(topic)
    if not isinstance(offset, int):
        raise LogError(f"{offset!r} is not an offset", hint='commit whole numbers, as in {("clicks", 0): 17}')
    end = storage.partition(declared, index).state().visible
    # An offset below the start is no mistake: retention may have moved on since the records were read.
    if not 0 <= offset <= end:
        raise OffsetOutOfRange(
            f"offset {offset} of partition {index} of topic {topic!r} cannot be committed",
            why="offsets start at 0" if offset < 0 else f"the partition ends at {end}, and later records would be skipped",
            hint="commit the offset of the next record to process",
        )
    return declared.id
