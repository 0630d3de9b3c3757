"""The border between the follower's thread and the event loop: views by name, and a way to wait for their next epoch."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from headrace.log import Log
from headrace.serve.http.limits import ServerLimits
from headrace.serve.http.problems import Problem
from headrace.serve.views.followed import Followed
from headrace.serve.views.follower import Follower

_STARTING = 10.0
# A view whose job was reset is not known for a moment.
_AWAY = 1.5


class _Signal(asyncio.Event):
    """The next epoch of a view, for all who wait for it."""

    waiting = 0


class Hub:
    """The views for handlers."""

    def __init__(self, log: Log, home: Path, cache: Path | None, limits: ServerLimits) -> None:
        self.log, self.home, self.limits = log, home, limits
        self.follower = Follower(log, home, cache, self._moved)
        self.subscribers = 0
        self.ingesting = 0
        self._closed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signals: dict[str, _Signal] = {}

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.follower.start()

    @property
    def closing(self) -> bool:
        return self._closed.is_set()

    def close(self) -> None:
        """Let every stream end, and who waits for an epoch be told."""
        self._closed.set()
        for name in list(self._signals):
            self._wake(name)

    async def stop(self) -> None:
        self.close()
        await asyncio.to_thread(self.follower.stop)

    def view(self, name: str) -> Followed:
        """A view that is ready to be read."""
        found = self.follower.view(name)
        if found is None and not self.follower.discovered:
            raise Problem(503, "the server has not looked for views yet", headers={"Retry-After": "1"})
        if found is None:
            known = ", ".join(followed.view.name for followed in self.follower.views())
            raise Problem(404, f"there is no view {name!r}", hint=f"views: {known or 'none; a view is there once its job has run'}")
        if not found.ready:
            raise Problem(503, f"view {name!r} is still being read", headers={"Retry-After": "1"})
        return found

    async def opened(self, name: str) -> Followed:
        """The same for a subscriber: while the server starts, or reads the view again, it waits until the view is ready."""
        began = known_at = asyncio.get_running_loop().time()
        while (now := asyncio.get_running_loop().time()) - began < _STARTING:
            found = self.follower.view(name)
            if found is not None and found.ready:
                return found
            if found is not None or not self.follower.discovered:
                known_at = now
            elif now - known_at > _AWAY:
                break
            await self.moved(name, 0.05)
        return self.view(name)

    async def moved(self, name: str, seconds: float) -> None:
        """Return when a view has moved, or after some seconds."""
        signal = self._signals.setdefault(name, _Signal())
        signal.waiting += 1
        try:
            # Not `wait_for`: it makes a task of its own, for each of many subscribers.
            async with asyncio.timeout(seconds):
                await signal.wait()
        except TimeoutError:
            return
        finally:
            signal.waiting -= 1
            # A client may ask for any name, also for one that no view ever has.
            if not signal.waiting and self._signals.get(name) is signal:
                del self._signals[name]

    async def pause(self, seconds: float) -> None:
        """Return after some seconds, or when the server closes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()

    async def reached(self, name: str, epoch: int, seconds: float) -> Followed:
        """The view once it exists and has reached an epoch."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            found = self.follower.view(name)
            at = found.table.epoch if found is not None and found.ready else -1
            if found is not None and at >= epoch:
                return found
            if self.closing:
                raise Problem(503, "the server stops", headers={"Retry-After": "1"})
            rest = deadline - asyncio.get_running_loop().time()
            if rest <= 0:
                self.view(name)
                raise Problem(408, f"view {name!r} is at epoch {at}, and did not come to {epoch} in {seconds:g} s")
            await self.moved(name, min(rest, 0.1))

    def _moved(self, name: str) -> None:
        """Called by the follower's thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, name)

    def _wake(self, name: str) -> None:
        signal = self._signals.pop(name, None)
        if signal is not None:
            signal.set()
