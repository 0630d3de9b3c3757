"""A real Redis server (loopback, its own data) for development, tests and benchmarks; needs `redis-server` (Debian: redis-server)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from headrace.core.errors import SettingsError
from headrace.ops.servers.server import LoopbackServer


class RedisServer(LoopbackServer):
    """One server that keeps what it has acknowledged over a kill, its data in a temporary directory (or in `directory`, which is kept).

    with RedisServer() as server:
        client = redis.Redis.from_url(server.url)
    """

    name = "redis"
    ready = ("Ready to accept connections",)

    def __init__(
        self, *, directory: Path | None = None, settings: Mapping[str, str] | None = None, start_within: timedelta = timedelta(seconds=30)
    ) -> None:
        super().__init__(directory, start_within)
        self._settings = dict(settings or {})
        (self._port,) = self._ports(1)

    @property
    def address(self) -> str:
        return self.url

    @property
    def url(self) -> str:
        """The address for clients, including the password."""
        return f"redis://:{self._password()}@127.0.0.1:{self.port}/0"

    @property
    def port(self) -> int:
        return self._port

    def _command(self) -> list[str]:
        found = shutil.which("redis-server")
        if found is None:
            raise SettingsError("the program 'redis-server' was not found", hint="install it (Debian: apt-get install redis-server)")
        return [found, str(self.directory / "redis.conf")]

    def _make(self) -> None:
        # Not as arguments: other users of the machine can see those.
        lines = [
            f"port {self._port}", "bind 127.0.0.1", f"dir {self.directory}", f"requirepass {self._password()}", 'save ""', "appendonly yes",
            *(f"{name} {value}" for name, value in self._settings.items()),
        ]  # fmt: skip
        (self.directory / "redis.conf").write_text("\n".join([*lines, ""]))
