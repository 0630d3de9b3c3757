"""The members of a consumer group and their partitions: a value, changed in steps, that fits in one small file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, NamedTuple

from headrace.core.errors import LogError
from headrace.log.errors import CorruptLog
from headrace.log.files.checksum import checksum
from headrace.log.groups.assignment import TopicPartition, assigned

_MICROSECOND = timedelta(microseconds=1)


class Shape(NamedTuple):
    """The topic behind a name, and the number of its partitions."""

    id: str
    partitions: int


@dataclass(frozen=True)
class GroupMember:
    """One member. `target` is what it should read, `owned` what it reads: a partition is released before its next owner takes it."""

    id: str
    topics: tuple[str, ...]
    session_timeout: timedelta
    heartbeat_at: int
    instance: str | None = None
    owned: frozenset[TopicPartition] = frozenset()
    target: frozenset[TopicPartition] = frozenset()

    def alive(self, now: int) -> bool:
        return now - self.heartbeat_at <= self.session_timeout // _MICROSECOND


@dataclass(frozen=True)
class Roster:
    """The members of a group in one generation. Every step returns a new roster; no partition ever has two owners."""

    generation: int = 0
    assignment: str = ""
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    members: Mapping[str, GroupMember] = field(default_factory=dict)

    @property
    def subscriptions(self) -> dict[str, tuple[str, ...]]:
        return {member.id: member.topics for member in self.members.values()}

    @property
    def owners(self) -> dict[TopicPartition, str]:
        return {place: member.id for member in self.members.values() for place in member.owned}

    @property
    def settled(self) -> bool:
        """Whether every member reads what it should."""
        return all(member.owned == member.target for member in self.members.values())

    def joined(self, member: GroupMember, assignment: str) -> Roster:
        """With a new member. An earlier member with the same instance name is replaced and leaves it its partitions."""
        if self.members and self.assignment != assignment:
            raise LogError(
                f"the group's assignment is {self.assignment!r}, not {assignment!r}",
                why="all members must come to the same plan",
                hint=f"use {self.assignment!r}, or stop its {len(self.members)} members first",
            )
        before = next((known for known in self.members.values() if member.instance and known.instance == member.instance), None)
        rest = {known.id: known for known in self.members.values() if known is not before}
        arrived = replace(member, target=before.target if before else frozenset())
        return replace(self, assignment=assignment, members={**rest, member.id: arrived})

    def left(self, member: str) -> Roster:
        return replace(self, members={known: value for known, value in self.members.items() if known != member})

    def beaten(self, member: str, topics: tuple[str, ...], now: int) -> Roster:
        """With a heartbeat of a member, and its present topics."""
        return self._with(replace(self.members[member], topics=topics, heartbeat_at=now))

    def expired(self, now: int) -> Roster:
        """Without the members that were silent for longer than their session time-out."""
        # A heartbeat from the future was sent before the clock was set back: its time begins now.
        current = {member.id: replace(member, heartbeat_at=min(member.heartbeat_at, now)) for member in self.members.values()}
        return replace(self, members={name: member for name, member in current.items() if member.alive(now)})

    def planned(self, shapes: Mapping[str, Shape]) -> Roster:
        """The next generation: the assignment for the present members and topics of these shapes."""
        wanted = {topic for topics in self.subscriptions.values() for topic in topics}
        sizes = {topic: shapes[topic].partitions for topic in sorted(wanted & set(shapes))}
        owners = self.owners
        # A partition without a reader is on its way to its target: leave it there, where it moves least.
        before = {member.id: member.owned | {place for place in member.target if place not in owners} for member in self.members.values()}
        plan = assigned(self.assignment, self.subscriptions, sizes, before)
        members = {name: replace(member, target=frozenset(plan[name])) for name, member in self.members.items()}
        return replace(self, generation=self.generation + 1, shapes=shapes, members=members)

    def claimed(self, member: str) -> Roster:
        """With a member reading all of its target that no other member still reads."""
        me, owners = self.members[member], self.owners
        free = {place for place in me.target if place not in owners}
        return self._with(replace(me, owned=me.owned | free)) if free else self

    def released(self, member: str, places: Iterable[TopicPartition]) -> Roster:
        """With a member that no longer reads some partitions."""
        me = self.members[member]
        return self._with(replace(me, owned=me.owned - frozenset(places)))

    def to_json(self) -> bytes:
        content = {
            "generation": self.generation,
            "assignment": self.assignment,
            "shapes": {topic: list(shape) for topic, shape in self.shapes.items()},
            "members": [_member_to_json(member) for member in self.members.values()],
        }
        text = json.dumps(content, sort_keys=True)
        return json.dumps({"crc32c": checksum(text.encode()), "group": content}, sort_keys=True).encode()

    @classmethod
    def from_json(cls, data: bytes, path: str) -> Roster:
        try:
            document = json.loads(data)
            content = document["group"]
            sound = checksum(json.dumps(content, sort_keys=True).encode()) == document["crc32c"]
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound:
            raise CorruptLog(
                f"{path} has been changed or damaged",
                why="it says which member reads which partition",
                hint="delete the file: the members join again, and committed offsets are not in it",
            )
        return cls(
            generation=content["generation"],
            assignment=content["assignment"],
            shapes={topic: Shape(*shape) for topic, shape in content["shapes"].items()},
            members={item["id"]: _member_from_json(item) for item in content["members"]},
        )

    def _with(self, member: GroupMember) -> Roster:
        return replace(self, members={**self.members, member.id: member})


def _member_to_json(member: GroupMember) -> dict[str, Any]:
    return {
        "id": member.id, "instance": member.instance, "topics": list(member.topics), "heartbeat_at": member.heartbeat_at,
        "session_timeout": member.session_timeout // _MICROSECOND,
        "owned": sorted(member.owned), "target": sorted(member.target),
    }  # fmt: skip


def _member_from_json(item: Mapping[str, Any]) -> GroupMember:
    return GroupMember(
        id=item["id"], instance=item["instance"], topics=tuple(item["topics"]), heartbeat_at=item["heartbeat_at"],
        session_timeout=item["session_timeout"] * _MICROSECOND,
        owned=frozenset((topic, index) for topic, index in item["owned"]),
        target=frozenset((topic, index) for topic, index in item["target"]),
    )  # fmt: skip
