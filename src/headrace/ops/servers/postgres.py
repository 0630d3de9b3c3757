"""A real PostgreSQL server (loopback, its own data) for development, tests and benchmarks; needs its programs (Debian: postgresql)."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from headrace.core.errors import ConnectorError, SettingsError
from headrace.ops.servers.programs import as_other_user, other_user, refuse_unreachable
from headrace.ops.servers.server import LoopbackServer

_STILL_HELD = "pre-existing shared memory block"


class PostgresServer(LoopbackServer):
    """One server with one database, its data in a temporary directory (or in `directory`, which is kept).

    Started by root, it runs as another user, since PostgreSQL refuses root. The address stays the same over kill and restart.

        with PostgresServer() as postgres:
            connection = psycopg.connect(postgres.dsn)
    """

    name = "postgres"
    ready = ("database system is ready to accept connections",)
    # "Fast" shutdown: clients are disconnected, not waited for.
    stop_by = signal.SIGINT

    def __init__(
        self, *, directory: Path | None = None, settings: Mapping[str, str] | None = None, start_within: timedelta = timedelta(seconds=60)
    ) -> None:
        super().__init__(directory, start_within)
        # Data in a temporary directory need not survive a failure of the machine.
        self._settings = {"fsync": "off" if directory is None else "on", "max_connections": "50", **(settings or {})}
        (self._port,) = self._ports(1)

    @property
    def address(self) -> str:
        return self.dsn

    @property
    def dsn(self) -> str:
        """The address for clients, including the password."""
        return f"postgresql://headrace:{self._password()}@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        deadline = time.monotonic() + self._start_within.total_seconds()
        while True:
            try:
                return super().start()
            except ConnectorError:
                # The children of a killed server take a moment to notice; until then its shared memory is held.
                if time.monotonic() > deadline or _STILL_HELD not in self._server.log_text():
                    raise
                self._server.kill()
            time.sleep(0.1)

    def _command(self) -> list[str]:
        options = {"listen_addresses": "127.0.0.1", "port": str(self._port), "unix_socket_directories": "", **self._settings}
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        return [*as_other_user(), program("postgres"), "-D", str(self.directory / "data"), *words]

    def _make(self) -> None:
        data, password = self.directory / "data", self.directory / "password"
        if data.exists():
            return
        self._password()
        if owner := other_user():
            refuse_unreachable(self.directory, owner)
            for path in (self.directory, password):
                shutil.chown(path, owner)
        options = ["--username=headrace", "--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8", "--no-locale", "--no-sync"]
        command = [*as_other_user(), program("initdb"), "-D", str(data), *options]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=self.directory)
        if done.returncode:
            raise ConnectorError(f"PostgreSQL's data in {data} could not be created:\n{done.stdout}{done.stderr}")


def program(name: str) -> str:
    """The path of a program of PostgreSQL's server; Debian keeps them out of the PATH."""
    packaged = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    found = str(packaged[-1]) if packaged else shutil.which(name)
    if found is None:
        raise SettingsError(f"PostgreSQL's program {name!r} was not found", hint="install the server (Debian: apt-get install postgresql)")
    return found
