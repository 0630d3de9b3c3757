"""Consumer groups from the outside: their names, positions and lags, and moves of their positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.core.clock import to_datetime
from headrace.core.nearest import choices
from headrace.log.consumer import Place, place_of
from headrace.log.errors import GroupInUse, UnknownGroup, UnknownTopic
from headrace.log.files.cursor import Cursor, ReadLimits, max_event_time
from headrace.log.files.partition import Partition
from headrace.log.groups.assignment import TopicPartition
from headrace.log.groups.commits import Commit
from headrace.log.groups.group import Group
from headrace.log.groups.offsets import Committed
from headrace.log.groups.roster import Roster
from headrace.log.storage import Storage


def describe(storage: Storage, name: str) -> dict[str, Any]:
    """A group's members, and for each partition the committed offset, the end, and the lag in records and in event time."""
    group = _known(storage, name)
    roster = group.roster().expired(storage.clock.now())
    committed, owners = storage.offsets.of(name), roster.owners
    return {
        "name": name,
        "state": "empty" if not roster.members else "stable" if roster.settled else "rebalancing",
        "generation": roster.generation,
        "assignment": roster.assignment or None,
        "members": [
            {
                "id": member.id, "instance": member.instance, "topics": list(member.topics), "partitions": sorted(member.owned),
                "heartbeat_at": to_datetime(member.heartbeat_at),
            }
            for member in sorted(roster.members.values(), key=lambda member: member.id)
        ],
        "partitions": [
            _progress(partition, committed.get(place)) | {"member": owners.get(place)}
            for place, partition in _partitions(storage, roster, committed)
        ],
    }  # fmt: skip


def seek(storage: Storage, name: str, topic: str, place: Place, partition: int | None = None) -> dict[TopicPartition, int]:
    """Commit `place` for a topic or one partition, so that the group continues from there. Only while it has no live members."""
    with _nobody_in(storage, _known(storage, name)) as generation:
        declared = storage.topic(topic)
        chosen = range(declared.partitions) if partition is None else [partition]
        offsets = {(topic, index): place_of(storage.partition(declared, index), place, storage.transactions) for index in chosen}
        storage.offsets.store(Commit(name, offsets, generation).rows(storage))
    return offsets


def reset(storage: Storage, name: str, topic: str | None = None) -> None:
    """Forget what a group has committed, so that its consumers begin at their `start` again. Only while it has no live members."""
    with _nobody_in(storage, _known(storage, name)):
        storage.offsets.forget(name, [place for place in storage.offsets.of(name) if topic in (None, place[0])])


def delete(storage: Storage, name: str) -> None:
    """Forget a group and all it has committed. Only while it has no live members."""
    group = _known(storage, name)
    with _nobody_in(storage, group):
        storage.offsets.forget(name, storage.offsets.of(name))
        group.delete()


@contextmanager
def _nobody_in(storage: Storage, group: Group) -> Iterator[int]:
    """Hold a group without live members; silent members are expired, and cannot commit afterwards."""
    with group.locked() as before:
        after = before.expired(storage.clock.now())
        if after.members:
            raise GroupInUse(
                f"group {group.name!r} has {len(after.members)} live members: {', '.join(sorted(after.members))}",
                why="they would continue from where they are",
                hint="stop its consumers first; one that died expires after its session_timeout",
            )
        if before.members:
            group.store(before, after.planned(before.shapes))
        yield after.generation


def _known(storage: Storage, name: str) -> Group:
    group = storage.group(name)
    if not group.exists and not storage.offsets.of(name):
        names = storage.group_names()
        raise UnknownGroup(f"there is no group {name!r}", hint=choices(name, names, "groups here"))
    return group


def _partitions(storage: Storage, roster: Roster, committed: Iterable[TopicPartition]) -> Iterator[tuple[TopicPartition, Partition]]:
    """The partitions that a group reads or has read, of topics that are still there."""
    for name in sorted({topic for topics in roster.subscriptions.values() for topic in topics} | {topic for topic, _ in committed}):
        try:
            topic = storage.topic(name)
        except UnknownTopic:
            continue
        for index in range(topic.partitions):
            yield (name, index), storage.partition(topic, index)


def _progress(partition: Partition, committed: Committed | None) -> dict[str, Any]:
    if committed is not None and committed.topic_id != partition.topic.id:
        committed = None
    state = partition.state()
    reached = min(max(committed.offset, state.start), state.visible) if committed else state.start
    return {
        "topic": partition.topic.name,
        "partition": partition.index,
        "committed": committed.offset if committed else None,
        "metadata": committed.metadata if committed else None,
        "committed_at": to_datetime(committed.committed_at) if committed else None,
        "start": state.start,
        "end": state.visible,
        "lag": state.visible - reached,
        "lag_seconds": _behind(partition, state.start, reached, state.visible),
    }


def _behind(partition: Partition, start: int, reached: int, end: int) -> float | None:
    """How far event time has advanced since the last committed record, in seconds; None if no record has a time."""
    if reached >= end:
        return 0.0
    latest = max_event_time(partition, reached, end)
    processed = max_event_time(partition, start, reached) if reached > start else _first_time(partition, start)
    return None if latest is None or processed is None else max(0.0, (latest - processed) / 1_000_000)


def _first_time(partition: Partition, start: int) -> int | None:
    for batch in Cursor(partition, start).read(ReadLimits(rows=1), ("_time",)):
        moment = batch.column("_time").cast("int64")[0].as_py()
        return int(moment) if moment is not None else None
    return None
