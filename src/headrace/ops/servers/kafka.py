"""A real Kafka broker (KRaft, one node, loopback) for development, tests and benchmarks; needs Java 17 and, the first time, the network."""

from __future__ import annotations

import base64
import os
import subprocess
import uuid
from collections.abc import Mapping
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

from headrace.core.errors import ConnectorError
from headrace.core.files.jars import fetch_jars, read_lock
from headrace.ops.servers.programs import java
from headrace.ops.servers.server import LoopbackServer

# The JVM options of Kafka's own start script.
_JVM_OPTIONS = ["-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35", "-Djava.awt.headless=true"]
_LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
"""


class KafkaServer(LoopbackServer):
    """One broker that is also its controller, with its data in a temporary directory (or in `directory`, which is kept).

    Topics must be created, with replication factor 1. The address stays the same over kill and restart.

        with KafkaServer() as kafka:
            admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    """

    name = "kafka"
    # The broker writes this line after the controller has registered it, so that a client's first request is answered.
    ready = ("Kafka Server started",)

    def __init__(
        self,
        *,
        directory: Path | None = None,
        heap: str = "1g",
        settings: Mapping[str, str] | None = None,
        start_within: timedelta = timedelta(seconds=90),
    ) -> None:
        super().__init__(directory, start_within)
        self._heap = heap
        self._settings = dict(settings or {})
        self._broker_port, self._controller_port = self._ports(2)

    @property
    def address(self) -> str:
        return self.bootstrap

    @property
    def bootstrap(self) -> str:
        """The `bootstrap.servers` of a client."""
        return f"127.0.0.1:{self._broker_port}"

    def _command(self) -> list[str]:
        return [*self._java(), "kafka.Kafka", str(self.directory / "server.properties")]

    def _java(self) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}"
        return [java("Kafka's broker"), f"-Xms{self._heap}", f"-Xmx{self._heap}", *_JVM_OPTIONS, "-cp", _classpath(), logging]

    def _make(self) -> None:
        self._write_configuration()
        self._format_storage(self._java())

    def _write_configuration(self) -> None:
        one_node = dict.fromkeys(
            [
                "offsets.topic.replication.factor",
                "offsets.topic.num.partitions",
                "transaction.state.log.replication.factor",
                "transaction.state.log.min.isr",
                "transaction.state.log.num.partitions",
                "share.coordinator.state.topic.replication.factor",
                "share.coordinator.state.topic.min.isr",
            ],
            "1",
        )
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._broker_port},CONTROLLER://127.0.0.1:{self._controller_port}",
            "log.dirs": str(self.directory / "data"),
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            # A broker that returns after a kill is registered when its former session has expired (default 9 s).
            "broker.session.timeout.ms": "2000",
            "broker.heartbeat.interval.ms": "400",
            **one_node,
            **self._settings,
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.directory / "server.properties").write_text(text)
        (self.directory / "log4j2.properties").write_text(_LOGGING)

    def _format_storage(self, java: list[str]) -> None:
        # Kafka's tool reads an id that begins with "-" as an option: the top bit is cleared, so that a letter comes first.
        first, *rest = uuid.uuid4().bytes
        cluster = base64.urlsafe_b64encode(bytes([first & 0x7F, *rest])).decode().rstrip("=")
        tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted", "--cluster-id", cluster]
        command = [*java, *tool, "--config", str(self.directory / "server.properties")]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise ConnectorError(f"Kafka's storage in {self.directory} could not be formatted:\n{done.stdout}{done.stderr}")


def _classpath() -> str:
    lock = files(__package__).joinpath("kafka-jars.lock").read_text()
    return os.pathsep.join(str(jar) for jar in fetch_jars(read_lock(lock)))
