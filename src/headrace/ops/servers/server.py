"""Base class of servers on loopback: a directory, one process at a time, and an end with the block that started it."""

from __future__ import annotations

import secrets
import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from headrace.core.errors import ConnectorError
from headrace.ops.servers.ports import free_ports
from headrace.ops.servers.process import ServerProcess


class LoopbackServer(ABC):
    """A server with its data in a temporary directory (or in `directory`, which is kept). Its address stays the same over restarts."""

    name: ClassVar[str]
    """Its name in its files."""
    ready: ClassVar[tuple[str, ...]]
    """The texts in its log when it serves, in any order."""
    stop_by: ClassVar[signal.Signals] = signal.SIGTERM
    """The signal by which it shuts down at once and cleanly."""

    def __init__(self, directory: Path | None, start_within: timedelta) -> None:
        self._own_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix=f"headrace-{self.name}-"))
        self._start_within = start_within
        self._process: ServerProcess | None = None

    @property
    @abstractmethod
    def address(self) -> str:
        """The address for clients."""

    @property
    def pid(self) -> int:
        return self._server.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.alive

    @property
    def log_file(self) -> Path:
        """The server's log since its latest start."""
        return self._server.log_file

    def start(self) -> None:
        """Start the server and return when it serves; the first start creates its data."""
        if self._process is None:
            self.directory.mkdir(parents=True, exist_ok=True)
            command = self._command()
            self._process = ServerProcess(self.name, command, logs=self.directory, scratch=self.directory if self._own_directory else None)
            self._make()
        self._server.start()
        self._server.wait_until(lambda log: all(said in log for said in self.ready), within=self._start_within)

    def kill(self) -> None:
        """End the server as a crash would (SIGKILL); its data stays for `restart`."""
        self._server.kill()

    def restart(self) -> None:
        """Stop the server cleanly if it runs, then start it on the same data and address."""
        self._server.stop(how=self.stop_by)
        self.start()

    def pause(self) -> None:
        """Freeze the server (SIGSTOP): its connections stay open and nothing answers until `resume`."""
        self._server.pause()

    def resume(self) -> None:
        self._server.resume()

    def stop(self) -> None:
        """Shut the server down cleanly and remove its temporary directory; it can't be started again."""
        if self._process is not None:
            self._process.stop(how=self.stop_by)
            self._process.close()
        if self._own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def detach(self) -> None:
        """Let the server outlive this process; another process stops it by its pid."""
        self._server.detach()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _ports(self, count: int) -> list[int]:
        """Its own ports, which a kept directory remembers."""
        return [int(port) for port in self._remembered("ports", lambda: " ".join(map(str, free_ports(count)))).split()]

    def _password(self) -> str:
        return self._remembered("password", lambda: secrets.token_hex(8))

    def _remembered(self, name: str, make: Callable[[], str]) -> str:
        file = self.directory / name
        if not file.is_file():
            self.directory.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600)
            file.write_text(make())
        return file.read_text()

    @abstractmethod
    def _command(self) -> list[str]:
        """The program, with its arguments."""

    @abstractmethod
    def _make(self) -> None:
        """Create what the first start needs."""

    @property
    def _server(self) -> ServerProcess:
        if self._process is None:
            raise ConnectorError(f"the {self.name} server was not started", hint="use it in a with-block, or call start()")
        return self._process
