"""Subscribers of a view that fold what they are told, and know after every message what the view holds at its epoch."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import websockets.sync.client
from websockets.exceptions import WebSocketException

import headrace as hr
from headrace.core.errors import HeadraceError
from headrace.serve.client import Unreachable
from tests.support.processes import PATIENCE

Rows = dict[str, int]


class Folded:
    """A table by `url`, folded from messages. A change that does not fit what is there was lost before, or came twice."""

    def __init__(self) -> None:
        self.rows: Rows = {}

    def take(self, message: Mapping[str, Any]) -> bool:
        """Take in a message; True if the table is whole after it."""
        if message["type"] == "snapshot":
            if message["first"]:
                self.rows.clear()
            for row in message["rows"]:
                assert row["url"] not in self.rows, f"{row} came twice in one snapshot"
                self.rows[row["url"]] = _count(row)
            return bool(message["last"])
        for change in message.get("changes", ()):
            url, present = change["row"]["url"], change["row"]["url"] in self.rows
            assert present == (change["op"] != "insert"), f"{change} does not fit: the row is {'there' if present else 'not there'}"
            if change["op"] == "delete":
                del self.rows[url]
            else:
                self.rows[url] = _count(change["row"])
        return True


class Subscriber(threading.Thread):
    """Follows a view in a thread until it has come to an epoch; `truth` gives the rows of an epoch, where they are known."""

    def __init__(self, messages: Iterator[dict[str, Any]], truth: Callable[[int], Rows] | None) -> None:
        super().__init__(daemon=True)
        self._messages, self._truth = messages, truth
        self.table = Folded()
        self._last: int | None = None
        self.error: BaseException | None = None
        self.epoch = 0
        self.compared = 0

    def ends_at(self, epoch: int) -> None:
        """Wait until the subscriber has seen this epoch; what it found wrong is raised."""
        self._last = epoch
        self.join(PATIENCE)
        if self.error is not None:
            raise self.error
        assert not self.is_alive(), f"it is at epoch {self.epoch}, and the view at {epoch}"

    def run(self) -> None:
        try:
            for message in self._messages:
                if self.table.take(message):
                    self.epoch = message["epoch"]
                    self.compared += 1
                    wrong = {} if self._truth is None else _differences(self.table.rows, self._truth(self.epoch))
                    assert not wrong, f"not the view at epoch {self.epoch} after {str(message)[:500]}: {wrong}"
                if self._last is not None and self.epoch >= self._last:
                    return
        except (AssertionError, HeadraceError) as error:
            self.error = error


def over_events(url: str, token: str, view: str = "totals") -> Iterator[dict[str, Any]]:
    """The messages of `headrace.connect`, which resumes by itself; on a loaded machine, servers that are killed may be away for longer."""
    place = None
    while True:
        try:
            for message in hr.connect(url, token=token).view(view).messages(since=place):
                place = message["id"]
                yield message
        except Unreachable:
            continue


def over_socket(url: str, token: str, paused: threading.Event) -> Iterator[dict[str, Any]]:
    """The messages of a WebSocket, opened again from the last place whenever it is cut."""
    place = None
    address = f"{url.replace('http', 'ws')}/api/v1/views/totals"
    while True:
        since = f"?since={place}" if place else ""
        try:
            headers = {"Authorization": f"Bearer {token}"}
            with websockets.sync.client.connect(f"{address}{since}", additional_headers=headers, max_size=None) as opened:
                for text in opened:
                    message = json.loads(text)
                    place = message["id"]
                    yield message
        except (OSError, EOFError, WebSocketException):
            paused.wait(0.02)


def _differences(found: Rows, expected: Rows) -> dict[str, tuple[int | None, int | None]]:
    """What was found for each key with another value, and what was expected."""
    if found == expected:
        return {}
    return {key: (found.get(key), expected.get(key)) for key in {*found, *expected} if found.get(key) != expected.get(key)}


def _count(row: Mapping[str, Any]) -> int:
    """The column besides the key."""
    (count,) = (value for name, value in row.items() if name != "url")
    return int(count)
