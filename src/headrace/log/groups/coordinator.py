"""The coordinator's work, done by any member that comes along: membership, assignment, and the start of new partitions."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.log.errors import UnknownTopic
from headrace.log.groups.assignment import TopicPartition
from headrace.log.groups.commits import Commit
from headrace.log.groups.group import Group
from headrace.log.groups.roster import GroupMember, Roster, Shape
from headrace.log.storage import Storage


class Coordinator:
    """Changes to one group's roster. Each expires silent members, and makes a new plan when members or topics have changed."""

    def __init__(self, storage: Storage, group: Group) -> None:
        self._storage = storage
        self._group = group

    def join(self, member: GroupMember, assignment: str) -> Roster:
        """Add a new member, and let it read the free partitions."""
        roster = self._group.change(
            lambda before: self._planned(before, self._expired(before).joined(member, assignment)).claimed(member.id)
        )
        self._group.listen()
        return roster

    def beat(self, member: str, topics: tuple[str, ...], *, due: bool = True) -> Roster:
        """Record a heartbeat of a member; it takes the partitions that became free for it. Does nothing if it is no longer in the group.

        A heartbeat that is not due is not stored: a member that only looks changes nothing.
        """

        def step(before: Roster) -> Roster:
            if member not in before.members:
                return before
            now, me = self._storage.clock.now(), before.members[member]
            # A pause since the clock was read may have made it due after all; a member that is here does not expire itself.
            beat_at = me.heartbeat_at if me.alive(now) and not due else now
            return self._planned(before, before.beaten(member, topics, beat_at).expired(now)).claimed(member)

        return self._group.change(step)

    def release(self, member: str, places: Iterable[TopicPartition]) -> Roster:
        """Record that a member has stopped reading some partitions, so that others may take them."""

        def step(before: Roster) -> Roster:
            return before.released(member, places).claimed(member) if member in before.members else before

        return self._group.change(step)

    def leave(self, member: str) -> None:
        self._group.change(lambda before: self._planned(before, self._expired(before).left(member)))

    def _expired(self, roster: Roster) -> Roster:
        return roster.expired(self._storage.clock.now())

    def _planned(self, before: Roster, after: Roster) -> Roster:
        """The next generation if members, their topics or the partitions of these have changed since the present plan."""
        wanted = {topic for topics in after.subscriptions.values() for topic in topics}
        # Topics that no member reads at the moment are remembered, so that partitions added meanwhile are recognized as new.
        shapes = {topic: shape for topic, shape in before.shapes.items() if topic not in wanted} | self._shapes(wanted)
        if after.subscriptions == before.subscriptions and shapes == before.shapes:
            return after
        self._begin_late_ones(before, after, shapes)
        return after.planned(shapes)

    def _shapes(self, topics: Iterable[str]) -> dict[str, Shape]:
        found = {}
        for name in sorted(topics):
            try:
                topic = self._storage.topic(name)
            except UnknownTopic:
                # Deleted while the group reads it: it has no partitions until it exists again.
                continue
            found[name] = Shape(topic.id, topic.partitions)
        return found

    def _begin_late_ones(self, before: Roster, after: Roster, shapes: dict[str, Shape]) -> None:
        """Commit the beginning of partitions that were added while the group existed.

        A group that starts at the end means the end at that time: records written before a member notices a new partition are not skipped.
        """
        stayed = {topic for name in before.members if name in after.members for topic in after.members[name].topics}
        late: dict[TopicPartition, int] = {}
        for topic, shape in shapes.items():
            known = before.shapes.get(topic)
            if known is None and topic not in stayed:
                continue
            first = known.partitions if known is not None and known.id == shape.id else 0
            late |= {(topic, index): 0 for index in range(first, shape.partitions)}
        committed = self._storage.offsets.of(self._group.name) if late else {}
        fresh = {place: 0 for place in late if place not in committed or committed[place].topic_id != shapes[place[0]].id}
        if fresh:
            self._storage.offsets.store(Commit(self._group.name, fresh, after.generation).rows(self._storage))
