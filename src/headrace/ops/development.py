"""Private servers for development, each with its data under the home of the apps, that run until they are stopped."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from headrace.core.errors import ConnectorError, SettingsError
from headrace.core.nearest import choices
from headrace.ops.servers.kafka import KafkaServer
from headrace.ops.servers.opensearch import OpenSearchServer
from headrace.ops.servers.postgres import PostgresServer
from headrace.ops.servers.redis import RedisServer
from headrace.ops.servers.server import LoopbackServer

SERVERS: dict[str, type[LoopbackServer]] = {
    "kafka": KafkaServer,
    "opensearch": OpenSearchServer,
    "postgres": PostgresServer,
    "redis": RedisServer,
}
_PATIENCE = 30.0


@dataclass(frozen=True)
class Running:
    """A server that was started, its process, and how clients connect."""

    server: str
    address: str
    pid: int
    since: str
    """When its process began: the number alone may be another's by now."""


def up(name: str, home: Path) -> Running:
    """Start a server on loopback, on its former data and address, or find the running one."""
    found = running(home).get(name)
    if found is not None:
        return found
    directory = _directory(name, home)
    server = SERVERS[name](directory=directory.resolve())  # type: ignore[call-arg] # each takes its directory
    try:
        server.start()
    except BaseException:
        server.stop()
        raise
    started = Running(name, server.address, server.pid, _since(server.pid))
    record = directory / "server.json"
    record.touch(mode=0o600)
    record.write_text(json.dumps(asdict(started)))
    server.detach()
    return started


def down(name: str, home: Path) -> Running | None:
    """Stop a server, and keep its data; None if it does not run."""
    found = running(home).get(name)
    if found is None:
        return None
    os.kill(found.pid, SERVERS[name].stop_by)
    deadline = time.monotonic() + _PATIENCE
    while _since(found.pid) == found.since:
        if time.monotonic() > deadline:
            raise ConnectorError(f"{name} did not stop within {_PATIENCE:g} seconds", hint=f"look at process {found.pid}")
        time.sleep(0.02)
    (_directory(name, home) / "server.json").unlink()
    return found


def running(home: Path) -> dict[str, Running]:
    """The running servers of this home."""
    known = [Running(**json.loads(file.read_text())) for name in SERVERS if (file := _directory(name, home) / "server.json").is_file()]
    return {server.server: server for server in known if _since(server.pid) == server.since}


def _directory(name: str, home: Path) -> Path:
    if name not in SERVERS:
        raise SettingsError(f"there is no server {name!r}", hint=choices(name, SERVERS, "servers"))
    return home / "servers" / name


def _since(pid: int) -> str:
    """The start time of a process; empty if there is none, or only a zombie."""
    answer = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, began = answer.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else began.strip()
