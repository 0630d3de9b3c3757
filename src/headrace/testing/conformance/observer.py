"""The observer of a sink's target: it reads continuously, also while writers and the server die, and judges what it saw."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from headrace.testing.conformance.subject import Parts, Subject, epoch_of

_PAUSE = 0.02
Snapshot = tuple[tuple[tuple[str, int], ...], ...]


@dataclass
class Seen:
    """The observations of one writer's epochs, each of which has a row for every user."""

    snapshots: set[Snapshot] = field(default_factory=set)
    last: Parts = field(default_factory=list)
    looks: int = 0

    def take(self, parts: Parts) -> None:
        self.looks += 1
        self.last = parts
        self.snapshots.add(tuple(tuple((str(row["user"]), int(row["n"])) for row in part) for part in parts))

    def faults(self, subject: Subject) -> list[str]:
        """The observations that violate a guarantee; a part of a target is what one commit changes as a whole."""
        users = [{str(row["user"]) for row in part} for part in self.last]
        return sorted({fault for snapshot in self.snapshots for fault in _faults(snapshot, users, subject)})


@contextmanager
def observed(subject: Subject) -> Iterator[Seen]:
    """Observe a target while the block runs; it fails if a guarantee was violated."""
    with watched(subject) as seen:
        yield seen
    assert (wrong := seen.faults(subject)) == [], wrong


@contextmanager
def watched(subject: Subject) -> Iterator[Seen]:
    """Observe a target while the block runs, and once more at its end; while it cannot be reached, wait."""
    seen, over = Seen(), threading.Event()

    def look() -> None:
        while True:
            with suppress(*subject.away):
                seen.take(subject.parts())
            if over.wait(_PAUSE):
                return

    thread = threading.Thread(target=look, name="observer", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
    assert seen.looks, "the observer saw nothing"
    seen.take(subject.parts())


def _faults(snapshot: Snapshot, users: list[set[str]], subject: Subject) -> Iterator[str]:
    table = bool(subject.key) and not subject.history
    for place, rows in enumerate(snapshot):
        # Before the first rows of a part arrived, its users are known from later ones.
        expected = users[place] if place < len(users) else set()
        by_epoch: dict[int, Counter[str]] = defaultdict(Counter)
        for user, number in rows:
            by_epoch[epoch_of(number)][user] += 1
        for epoch, count in by_epoch.items():
            if subject.whole and set(count) != expected:
                yield f"a part of epoch {epoch}: {sorted(count)} of {sorted(expected)}"
            if max(count.values()) > 1:
                yield f"epoch {epoch} twice"
        if subject.whole and table and len(by_epoch) > 1:
            yield f"epochs {sorted(by_epoch)} of a table at once"
        if not table:
            yield from _disorder(rows)


def _disorder(rows: tuple[tuple[str, int], ...]) -> Iterator[str]:
    last: dict[str, int] = {}
    for user, number in rows:
        if number < last.get(user, number):
            yield f"{user}: {number} after {last[user]}"
        last[user] = number
