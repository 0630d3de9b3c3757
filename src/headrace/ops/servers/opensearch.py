"""A real OpenSearch node (loopback, no security) for development, tests and benchmarks; needs Java 17 and, the first time, the network."""

from __future__ import annotations

import os
import shutil
import signal
import zipfile
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

from headrace.core.files.jars import fetch_jars, read_lock
from headrace.ops.servers.programs import as_other_user, java, other_user
from headrace.ops.servers.server import LoopbackServer

_PROGRAM = "org.opensearch.bootstrap.OpenSearch"
# The JVM options of OpenSearch's own start script: it has a security manager, which must be allowed.
_JVM_OPTIONS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.security.manager=allow", "-Dlog4j2.disable.jmx=true"]
_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


class OpenSearchServer(LoopbackServer):
    """One node, its data in a temporary directory (or in `directory`, which is kept).

    Started by root, it runs as another user, since OpenSearch refuses root. The address stays the same over kill and restart.

        with OpenSearchServer() as server:
            hr.search(server.url, index="products")
    """

    name = "opensearch"
    # Two threads say these: requests are accepted after the one, answered after the other.
    ready = ("started (org.opensearch.node.Node)", "indices into cluster_state")
    # A clean stop takes half a minute; acknowledged records are in its translog, from which it recovers.
    stop_by = signal.SIGKILL

    def __init__(self, *, directory: Path | None = None, heap: str = "512m", start_within: timedelta = timedelta(seconds=120)) -> None:
        super().__init__(directory, start_within)
        self._heap = heap
        self._port, self._inner_port = self._ports(2)

    @property
    def address(self) -> str:
        return self.url

    @property
    def url(self) -> str:
        """The address for requests."""
        return f"http://127.0.0.1:{self._port}"

    def _command(self) -> list[str]:
        home = self.directory / "program"
        places = [f"-Dopensearch.path.home={home}", f"-Dopensearch.path.conf={home / 'config'}", f"-Djava.io.tmpdir={home / 'tmp'}"]
        kind = ["-Dopensearch.distribution.type=zip", "-Dopensearch.bundled_jdk=false"]
        options = [f"-Xms{self._heap}", f"-Xmx{self._heap}", *_JVM_OPTIONS, *places, *kind]
        return [*as_other_user(), java("OpenSearch"), *options, "-cp", f"{home / 'lib'}/*", _PROGRAM]

    def _make(self) -> None:
        home = self.directory / "program"
        if not home.is_dir():
            self._unpack(home)
        settings = {
            "cluster.name": "headrace",
            "node.name": "one",
            "discovery.type": "single-node",
            "network.host": "127.0.0.1",
            "http.port": self._port,
            "transport.port": self._inner_port,
            "path.data": home / "data",
            "path.logs": home / "logs",
            # A nearly full disk is the owner's concern; by default the node would refuse to write.
            "cluster.routing.allocation.disk.threshold_enabled": "false",
        }
        (home / "config" / "opensearch.yml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
        (home / "config" / "log4j2.properties").write_text(_LOGGING)
        if owner := other_user():
            for folder in (self.directory, home, *(path for path in home.rglob("*") if "lib" not in path.parts[len(home.parts) :][:1])):
                shutil.chown(folder, owner)

    def _unpack(self, home: Path) -> None:
        (archive,) = fetch_jars(read_lock(files(__package__).joinpath("opensearch.lock").read_text()))
        fresh = self.directory / "unpacked"
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(fresh)
        (unpacked,) = fresh.iterdir()
        for folder in ("data", "logs", "tmp", "config"):
            (unpacked / folder).mkdir(exist_ok=True)
        os.rename(unpacked, home)  # noqa: PTH104
        fresh.rmdir()
