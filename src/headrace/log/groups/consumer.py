"""A consumer that shares topics with the other members of its group."""

from __future__ import annotations

import logging
import os
import platform
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from types import TracebackType

import pyarrow as pa

from headrace.core.errors import LogError
from headrace.log.bell import Watch
from headrace.log.consumer import Consumer, Start, place_of
from headrace.log.errors import Fenced, TopicDeleted, UnknownTopic
from headrace.log.files.cursor import ReadLimits
from headrace.log.groups.assignment import TopicPartition
from headrace.log.groups.commits import Commit
from headrace.log.groups.coordinator import Coordinator
from headrace.log.groups.group import Claim, check, holding
from headrace.log.groups.offsets import Committed
from headrace.log.groups.roster import GroupMember, Roster
from headrace.log.groups.settings import Callback, GroupSettings
from headrace.log.storage import Storage

_log = logging.getLogger(__name__)
_MICROSECOND = timedelta(microseconds=1)
_UNHEARD = -1

Topics = str | re.Pattern[str] | Sequence[str | re.Pattern[str]]


class GroupConsumer(Consumer):
    """Reads the partitions that its group assigns to it, from the committed offsets on. One thread at a time.

    The guarantee depends on the place of `commit`:

    - poll, process, commit: at least once. After a crash, records since the last commit come again.
    - poll, commit, process: at most once. After a crash, records of the last poll may never be processed.
    - `auto_commit` commits in a later `poll` (or `close`) what earlier ones returned: at least once, if a record is
      processed before the next `poll`.
    - `producer.send_offsets(consumer)` in a transaction with the results: exactly once.

    `poll` is also the heartbeat: without one for `session_timeout` the others take over, and `commit` raises `Fenced`. The next `poll`
    joins again. `heartbeat()` keeps the membership while a record takes long.

    >>> import tempfile; from headrace.log import Log
    >>> log = Log(tempfile.mkdtemp())
    >>> topic = log.create_topic("payments")
    >>> with log.producer() as producer:
    ...     delivery = producer.send("payments", b"12 EUR")
    >>> with log.consumer("payments", group="billing", auto_commit=False) as consumer:
    ...     payments = consumer.poll()
    ...     consumer.commit()
    >>> log.describe_group("billing")["partitions"][0]["lag"]
    0
    """

    def __init__(self, storage: Storage, group: str, topics: Topics, settings: GroupSettings, *, isolation: str = "read_committed") -> None:
        super().__init__(storage, isolation=isolation)
        self._group = storage.group(group)
        self._coordinator = Coordinator(storage, self._group)
        self._settings = settings
        self._process = os.getpid()
        self._topics = [topics] if isinstance(topics, str | re.Pattern) else list(topics)
        for name in self._topics:
            if isinstance(name, str):
                storage.topic(name)
        self._stored: dict[TopicPartition, int] = {}
        self._processed: dict[TopicPartition, int] = {}
        self._rings = self._beat_at = self._committed_at = self._generation = 0
        self._member = ""
        try:
            self._join()
        except BaseException:
            # No caller has this consumer to close it: its place would stay taken until its session times out.
            self._coordinator.leave(self._member)
            raise

    @property
    def group(self) -> str:
        return self._group.name

    @property
    def member_id(self) -> str:
        """The name of this membership; a new one each time it joins."""
        return self._member

    @property
    def generation(self) -> int:
        """The generation of the group that this member knows."""
        return self._generation

    @property
    def auto_commit(self) -> bool:
        return self._settings.auto_commit

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None, *, metadata: str = "") -> None:
        """Commit the present positions, or the given offsets: those of the next records to process. Durable when this returns.

        Raises `Fenced` and commits nothing if other members may have taken over the partitions.
        """
        self._refuse_unusable()
        if offsets is None:
            chosen = {place: offset for place, offset in self.positions().items() if self._current(place)}
            changed = {place: offset for place, offset in chosen.items() if self._stored.get(place) != offset}
        else:
            chosen = changed = dict(offsets)
        rows = Commit(self.group, changed, self._generation, metadata).rows(self._storage) if changed else None
        with holding([self.claim(chosen)]):
            if rows is not None:
                self._storage.offsets.store(rows)
        self._stored |= changed

    def committed(self) -> dict[TopicPartition, int | None]:
        """The committed offset of each partition that this member reads, None where there is none."""
        found = self._storage.offsets.of(self.group)
        return {place: found[place].offset if self._current(place) and place in found else None for place in self.assignment}

    def rewind(self) -> None:
        """Go back to the committed offsets, as after a transaction that was aborted."""
        committed = self._storage.offsets.settled(self.group)
        for place in self.assignment:
            self._cursors[place].seek(self._first_offset(place, committed.get(place))[0])

    def claim(self, places: Iterable[TopicPartition]) -> Claim:
        """The partitions that this member claims to read; they must still be its own when its offsets are stored."""
        return Claim(self._group, self._member, frozenset(places))

    def heartbeat(self) -> None:
        """Keep the membership while processing takes long; partitions move only in `poll`. Raises `Fenced` if it is lost."""
        self._refuse_unusable()
        check(self.claim(()), self._coordinator.beat(self._member, self._wanted()))
        self._beat_at = self._storage.clock.now()

    def assign(self, partitions: Iterable[TopicPartition], start: Start = "beginning") -> None:
        raise LogError("a member of a group is assigned its partitions", hint="make a consumer without group= to choose them")

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        raise LogError("a member of a group is assigned its partitions", hint="make a consumer without group= to choose them")

    def before_poll(self) -> None:
        self._refuse_unusable()
        now = self._storage.clock.now()
        self._processed = self.positions()
        # A clock that was set back must not keep this member silent.
        due = not self._beat_at <= now < self._beat_at + self._settings.heartbeat_interval // _MICROSECOND
        if due or self._group.rings() != self._rings:
            self._take_part(due=due)
        if self._settings.auto_commit and now - self._committed_at >= self._settings.commit_interval // _MICROSECOND:
            self._committed_at = now
            if not self._commit_processed(self._processed):
                self._lose()

    def watches(self) -> list[Watch]:
        return [*super().watches(), *self._group.watch()]

    def close(self) -> None:
        """Commit if `auto_commit` is set, release its partitions and leave the group."""
        self._leave(self.positions())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # After an error, the records of the last poll may not be processed: they come again.
        self._leave(self.positions() if error is None else self._processed)

    def _leave(self, processed: Mapping[TopicPartition, int]) -> None:
        if self._closed or self._process != os.getpid():
            return
        try:
            if self._settings.auto_commit:
                self._commit_processed(processed)
            self._tell(self._settings.on_revoked, self.assignment)
        finally:
            super().close()
            self._coordinator.leave(self._member)

    def _join(self) -> None:
        now = self._storage.clock.now()
        self._member = f"{self._settings.instance or f'{platform.node()}-{os.getpid()}'}-{secrets.token_hex(4)}"
        self._beat_at = self._committed_at = now
        self._rings = _UNHEARD
        me = GroupMember(self._member, self._wanted(), self._settings.session_timeout, now, self._settings.instance)
        self._follow(self._coordinator.join(me, self._settings.assignment))

    def _take_part(self, *, due: bool) -> None:
        """Send a heartbeat if one is due, release partitions that others are to read, and take those that were released."""
        self._rings = self._group.rings()
        self._beat_at = self._storage.clock.now() if due else self._beat_at
        roster = self._coordinator.beat(self._member, self._wanted(), due=due)
        me = roster.members.get(self._member)
        moving = [place for place in self.assignment if me is not None and (place not in me.target or not self._current(place))]
        if me is None or (moving and not self._gave_up(moving)):
            self._lose()
            return
        self._follow(self._coordinator.release(self._member, moving) if moving else roster)

    def _gave_up(self, moving: list[TopicPartition]) -> bool:
        """Commit and stop reading partitions before others begin; False if they have already begun."""
        if self._settings.auto_commit and not self._commit_processed({place: self._processed[place] for place in moving}):
            return False
        self._tell(self._settings.on_revoked, moving)
        self._stop_reading(moving)
        return True

    def _stop_reading(self, places: list[TopicPartition]) -> None:
        super().drop(places)
        for place in places:
            self._stored.pop(place, None)

    def _lose(self) -> None:
        """Handle that this member counted as dead, so that others own its partitions: join again, unless a namesake took its place."""
        lost = self.assignment
        _log.warning("member %s of group %s was silent for too long, and lost %s", self._member, self.group, lost or "nothing")
        self._stop_reading(lost)
        try:
            self._tell(self._settings.on_lost or self._settings.on_revoked, lost)
        except Fenced as error:
            # A callback for partitions that move in order commits first; here it is too late for that.
            _log.warning("nothing committed: %s", error.fact)
        namesakes = [member for member in self._group.roster().members.values() if member.id != self._member]
        if self._settings.instance and any(member.instance == self._settings.instance for member in namesakes):
            raise Fenced(
                f"another member of group {self.group!r} has taken the place of instance {self._settings.instance!r}",
                why="two members with one name would replace each other forever",
                hint="close this consumer, or give each its own instance name",
            )
        self._join()

    def _follow(self, roster: Roster) -> None:
        """Read the partitions that the roster assigns to this member."""
        self._generation = roster.generation
        me = roster.members.get(self._member)
        arrived = sorted(place for place in (me.owned if me else ()) if place not in self._cursors)
        committed = self._storage.offsets.settled(self.group) if arrived else {}
        begun: dict[TopicPartition, int] = {}
        taken = []
        for place in arrived:
            try:
                offset, stored = self._first_offset(place, committed.get(place))
                super().assign([place], offset)
            except (UnknownTopic, TopicDeleted):
                continue  # the next plan is made without it
            taken.append(place)
            if stored:
                self._stored[place] = offset
            elif self._settings.start != "beginning":
                begun[place] = offset
        # "end" is the end when the group began, not when its next member begins: records in between must not be skipped.
        self._commit_processed(begun)
        self._processed = self.positions()
        self._tell(self._settings.on_assigned, taken)

    def _first_offset(self, place: TopicPartition, found: Committed | None) -> tuple[int, bool]:
        """The first offset to read, and whether it was committed. Offsets that retention removed or a power cut lost are skipped."""
        topic = self._storage.topic(place[0])
        partition = self._storage.partition(topic, place[1])
        if found is None or found.topic_id != topic.id:
            return place_of(partition, self._settings.start, self._outcomes), False
        state = partition.state()
        offset = min(max(found.offset, state.start), state.visible)
        if offset != found.offset:
            _log.warning(
                "group %s: partition %d of %s has no offset %d, going on at %d", self.group, place[1], place[0], found.offset, offset
            )
        return offset, True

    def _commit_processed(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit what was processed; False if this member counts as dead, so that others process it again."""
        changed = {place: offset for place, offset in offsets.items() if self._stored.get(place) != offset and self._current(place)}
        if not changed:
            return True
        try:
            self.commit(changed)
        except Fenced as error:
            _log.warning("nothing committed: %s", error.fact)
            return False
        return True

    def _current(self, place: TopicPartition) -> bool:
        """Whether the topic that this member reads is still the one with that name."""
        cursor = self._cursors.get(place)
        try:
            return cursor is not None and self._storage.topic(place[0]).id == cursor.partition.topic.id
        except UnknownTopic:
            return False

    def _wanted(self) -> tuple[str, ...]:
        names = {name for name in self._topics if isinstance(name, str)}
        patterns = [name for name in self._topics if not isinstance(name, str)]
        if patterns:
            names |= {topic.name for topic in self._storage.topics() if any(pattern.fullmatch(topic.name) for pattern in patterns)}
        return tuple(sorted(names))

    def _read(self, limits: ReadLimits, columns: tuple[str, ...] | None) -> list[pa.RecordBatch]:
        try:
            return super()._read(limits, columns)
        except TopicDeleted:
            # The other topics are read again once the group has made its plan without this one.
            self._beat_at = 0
            return []

    def _tell(self, callback: Callback | None, places: list[TopicPartition]) -> None:
        if callback is not None and places:
            callback(places)

    def _refuse_unusable(self) -> None:
        if self._closed:
            raise LogError("this consumer is closed", hint="make a new one with log.consumer()")
        if self._process != os.getpid():
            raise LogError(
                f"this consumer belongs to process {self._process}",
                why="two processes would read and commit as one member",
                hint="make a consumer in each process, after the fork",
            )
