"""One subscriber of a view: a snapshot, then the net changes since its last message, as fast as it reads them.

Nothing is queued for a subscriber. When it has read a message it gets the net changes since that one, so that a slow subscriber gets fewer
and larger messages, and memory stays bounded. Its place is the view's topic and an epoch; a place that is too old begins with a new
snapshot.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from headrace.core.clock import to_datetime
from headrace.operators.event_time.epoch_time import BEGINNING, END
from headrace.schema.legible import as_json
from headrace.serve.http.numbers import digits
from headrace.serve.http.problems import Problem
from headrace.serve.views.changes import DELETE, INSERT, OPERATION
from headrace.serve.views.filters import Query
from headrace.serve.views.followed import Followed
from headrace.serve.views.hub import Hub
from headrace.serve.views.table import OFFSET, PARTITION

SNAPSHOT, CHANGES, PROGRESS = "snapshot", "changes", "progress"
_PIECE = 1_000
# A message distinguishes a longer silence from a stall.
_HEARTBEAT = 1.0
_GONE_FOR = 10.0
_CACHED = 64
# A subscriber that is behind by more epochs than this gets all changes since as one message.
_NEAR = 5
# The place of a client in the middle of a snapshot: its earlier rows are gone, so it starts again.
AMID = "-"


@dataclass(frozen=True)
class SubscriberMessage:
    """A message of a subscriber. `place` is where it can continue from."""

    event: str
    body: str
    place: str

    @cached_property
    def text(self) -> str:
        """All of it as JSON; made once for the many subscribers that get it."""
        return f'{self.body[:-1]},"id":"{self.place}"}}'


@dataclass(frozen=True)
class _NextMessage:
    """What brings subscribers from one epoch to `epoch`; no message if the rows are the same in both."""

    epoch: int
    message: SubscriberMessage | None


class Subscriptions:
    """Makes the messages of all subscribers; those without a filter share theirs."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._next: OrderedDict[tuple[str, int], _NextMessage] = OrderedDict()

    async def messages(self, name: str, query: Query, place: str | None) -> AsyncIterator[SubscriberMessage]:
        """The messages of one subscription, until the server closes."""
        hub = self._hub
        begun = await hub.reached(name, 0, _GONE_FOR)
        topic, epoch = begun.table.topic_id, _epoch_of(place, begun)
        while not hub.closing:
            # A view whose job was reset is missing for a moment.
            followed = await hub.reached(name, 0, _GONE_FOR)
            reached = followed.table.epoch
            if followed.table.topic_id != topic:
                topic, epoch = followed.table.topic_id, None
            if epoch is not None and epoch <= reached:
                if epoch == reached:
                    await hub.moved(name, _HEARTBEAT)
                    if hub.closing or hub.follower.view(name) is not followed or followed.table.epoch > epoch:
                        continue
                    yield self._progress(followed, epoch)
                    continue
                step = self._filtered(followed, epoch, query) if query.conditions else self._shared(followed, epoch, reached)
                if step is not None:
                    epoch = step.epoch
                    yield step.message or self._progress(followed, epoch)
                    continue
            # It has nothing yet, its place is too old, or the job was reset.
            begins_at, rows = await asyncio.to_thread(_kept, followed, query)
            for message in _snapshot(followed, begins_at, rows):
                yield message
            epoch = begins_at

    def _filtered(self, followed: Followed, epoch: int, query: Query) -> _NextMessage | None:
        """What follows for a subscriber with a filter at an epoch; None if the changes since then are no longer known."""
        changes = followed.table.changes_since(epoch)
        if changes is None:
            return None
        return _NextMessage(changes.epoch, _told(followed, changes.epoch, _seen(changes.frame, query, followed.view.key)))

    def _shared(self, followed: Followed, epoch: int, reached: int) -> _NextMessage | None:
        """The same without a filter. All subscribers at an epoch get the message of the first of them, even if there is more by now.

        So they stay together, and a message is made once for all of them however late some are; one that is far behind gets a new one.
        """
        place = (followed.table.topic_id, epoch)
        known = self._next.get(place)
        if known is not None and reached - known.epoch <= _NEAR:
            return known
        changes = followed.table.changes_since(epoch)
        if changes is None:
            return None
        made = self._next[place] = _NextMessage(changes.epoch, _told(followed, changes.epoch, changes.frame))
        self._next.move_to_end(place)
        if len(self._next) > _CACHED:
            self._next.popitem(last=False)
        return made

    def _progress(self, followed: Followed, epoch: int) -> SubscriberMessage:
        mark = self._hub.follower.progress(followed.view.app).watermark
        shown = None if mark is None or not BEGINNING < mark < END else to_datetime(mark).isoformat()
        body = {"type": PROGRESS, "epoch": epoch, "watermark": shown}
        return SubscriberMessage(PROGRESS, json.dumps(body, separators=(",", ":")), _place(followed, epoch))


def _kept(followed: Followed, query: Query) -> tuple[int, pl.DataFrame]:
    """The epoch of the view, and its rows that pass."""
    snapshot, keep = followed.table.snapshot(), query.keep()
    rows = snapshot.lazy()
    return snapshot.epoch, (rows if keep is None else rows.filter(keep)).collect()


def _seen(changes: pl.DataFrame, query: Query, key: tuple[str, ...]) -> pl.DataFrame:
    """The effect of changes behind a filter: a row that no longer passes is removed."""
    keep = query.keep()
    assert keep is not None
    if all(condition.column in key for condition in query.conditions):
        return changes.filter(keep)
    passes = keep.fill_null(False) & (pl.col(OPERATION) != DELETE)
    known = changes.filter(passes | (pl.col(OPERATION) != INSERT))
    return known.with_columns(pl.when(passes).then(pl.col(OPERATION)).otherwise(pl.lit(DELETE)).alias(OPERATION))


def _snapshot(followed: Followed, epoch: int, frame: pl.DataFrame) -> Iterator[SubscriberMessage]:
    for start in range(0, max(frame.height, 1), _PIECE):
        last = start + _PIECE >= frame.height
        rows = ",".join(as_json(frame.slice(start, _PIECE)).to_list()) if frame.height else ""
        flags = f'"first":{json.dumps(start == 0)},"last":{json.dumps(last)}'
        body = f'{{"type":"{SNAPSHOT}","epoch":{epoch},{flags},"rows":[{rows}]}}'
        yield SubscriberMessage(SNAPSHOT, body, _place(followed, epoch) if last else AMID)


def _told(followed: Followed, epoch: int, frame: pl.DataFrame) -> SubscriberMessage | None:
    if not frame.height:
        return None
    rows = as_json(frame.select(followed.view.columns.names)).to_list()
    places = frame.select(OPERATION, PARTITION, OFFSET).rows()
    told = ",".join(
        f'{{"op":"{operation}","partition":{partition},"offset":{offset},"row":{row}}}'
        for (operation, partition, offset), row in zip(places, rows, strict=True)
    )
    return SubscriberMessage(CHANGES, f'{{"type":"{CHANGES}","epoch":{epoch},"changes":[{told}]}}', _place(followed, epoch))


def check_place(place: str | None) -> None:
    """Refuse what no message has as its id."""
    if place is not None and place != AMID and not digits(place.rpartition("-")[2]):
        raise Problem(400, f"{place[:80]!r} is not a place in a view", hint="give the id of the last message")


def _epoch_of(place: str | None, followed: Followed) -> int | None:
    """The epoch of a place; None if it belongs to another topic than the view's."""
    if place is None or place == AMID:
        return None
    topic, _, epoch = place.rpartition("-")
    return int(epoch) if topic == followed.table.topic_id else None


def _place(followed: Followed, epoch: int) -> str:
    return f"{followed.table.topic_id}-{epoch}"
