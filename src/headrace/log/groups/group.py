"""The shared state of one consumer group: a small file that members change under a lock, and a bell that wakes the others.

There is no coordinator process: any member may change the roster, and all processes on the machine see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

from headrace.core.files.disk import Disk, Lock
from headrace.log.bell import Watch, Word
from headrace.log.errors import DiskFailed, Fenced
from headrace.log.groups.assignment import TopicPartition
from headrace.log.groups.roster import Roster

_BELL = 8


class Claim(NamedTuple):
    """The partitions that a member claims to read; valid only if the roster agrees."""

    group: Group
    member: str
    places: frozenset[TopicPartition]


class Membership(Protocol):
    """A member of a group, as seen by a producer that commits offsets for it."""

    @property
    def group(self) -> str: ...

    @property
    def generation(self) -> int: ...

    @property
    def auto_commit(self) -> bool: ...

    def positions(self) -> dict[TopicPartition, int]: ...

    def claim(self, places: Iterable[TopicPartition]) -> Claim: ...


class Group:
    """One group's roster on disk. The lock file outlives the group, so that a deleted and a new group never have one each."""

    def __init__(self, disk: Disk, home: Path, locks: Path, name: str) -> None:
        self.name = name
        self._disk = disk
        self._home = home / name
        self._path = self._home / "roster.json"
        self._locks = locks
        self._bell: memoryview | None = None

    @property
    def exists(self) -> bool:
        return self._disk.exists(self._path)

    def roster(self) -> Roster:
        """The roster as it is now; empty for a group that no member has joined."""
        try:
            file = self._disk.open(self._path)
        except FileNotFoundError:
            return Roster()
        try:
            return Roster.from_json(file.read(0, file.size()), str(self._path))
        finally:
            file.close()

    def change(self, step: Callable[[Roster], Roster]) -> Roster:
        """Replace the roster by the result of `step`, while no other process changes it or commits."""
        with self.locked() as before:
            after = step(before)
            if after != before:
                self.store(before, after)
        return after

    @contextmanager
    def locked(self) -> Iterator[Roster]:
        """Hold the lock of the group: no process joins, moves a partition, or commits."""
        with self._lock:
            yield self.roster()

    def rings(self) -> int:
        """A number that changes whenever members must read the roster again. One read of shared memory."""
        return int.from_bytes(self._bell, "little") if self._bell is not None else 0

    def watch(self) -> list[Watch]:
        """The word to wait for: it changes whenever members must read the roster again."""
        return [] if self._bell is None else [Word(self._bell, 0).watch()]

    def listen(self) -> None:
        """Find the bell again: another process may have deleted the group and created it again."""
        self._bell = self._disk.shared(self._home / "bell", _BELL)

    def delete(self) -> None:
        """Delete the roster. Called with the group locked."""
        if self._disk.exists(self._home):
            self._disk.remove_tree(self._home)

    def store(self, before: Roster, after: Roster) -> None:
        """Put a changed roster in place, and ring if others must act on it. Called with the group locked."""
        try:
            self._disk.make_directory(self._home)
            self._disk.replace(self._path, after.to_json())
            if self._bell is None:
                self.listen()
        except OSError as error:
            raise DiskFailed(
                f"the roster of group {self.name!r} could not be written: {error.strerror}",
                why="the group stays as it was",
                hint="free space or replace the disk, then poll again",
            ) from error
        if after.generation != before.generation or set(before.owners) - set(after.owners):
            assert self._bell is not None
            self._bell[:] = ((self.rings() + 1) % 2**64).to_bytes(_BELL, "little")
            Word(self._bell, 0).ring()

    @cached_property
    def _lock(self) -> Lock:
        self._disk.make_directory(self._locks)
        return self._disk.lock(self._locks / self.name)


@contextmanager
def holding(claims: Iterable[Claim]) -> Iterator[None]:
    """Hold the groups of all claims, after checking that each member still reads what it claims.

    Nothing can move while they are held: what is committed inside takes effect before any other member takes over.
    """
    by_group: dict[str, list[Claim]] = {}
    for claim in claims:
        by_group.setdefault(claim.group.name, []).append(claim)
    with ExitStack() as stack:
        # In the order of names, so that two processes that hold several groups never wait for each other.
        for name in sorted(by_group):
            roster = stack.enter_context(by_group[name][0].group.locked())
            for claim in by_group[name]:
                check(claim, roster)
        yield


def check(claim: Claim, roster: Roster) -> None:
    """Raise if a member claims a partition that the roster does not assign to it."""
    me = roster.members.get(claim.member)
    if me is None:
        raise Fenced(
            f"member {claim.member!r} is no longer in group {claim.group.name!r}",
            why="its session timed out or another took its place, so others read its partitions now; nothing was committed",
            hint="poll again to rejoin, and process from the committed offsets on; a longer session_timeout allows longer pauses",
        )
    moved = sorted(claim.places - me.owned)
    if moved:
        topic, index = moved[0]
        raise Fenced(
            f"member {claim.member!r} of group {claim.group.name!r} does not read partition {index} of topic {topic!r}",
            why="only the member that reads a partition may commit for it; nothing was committed",
            hint="commit before the next poll, or in on_revoked",
        )
