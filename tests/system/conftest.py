"""Servers that the system tests share, each started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.ops.servers.kafka import KafkaServer
from headrace.ops.servers.ports import free_ports
from headrace.ops.servers.postgres import PostgresServer
from headrace.ops.servers.redis import RedisServer

PASSWORD = "open-s3same"
GUARDED: dict[str, str] = {}
"""Where the broker of the tests takes in `ada` with the password, by where it takes in anybody."""


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    """A broker for tests that leave it running; each uses topics of its own."""
    server = KafkaServer()
    # Who comes by the second door has to say who it is.
    (port,) = free_ports(1)
    doors = {"PLAINTEXT": server._broker_port, "CONTROLLER": server._controller_port, "SASL_PLAINTEXT": port}
    server._settings |= {
        "listeners": ",".join(f"{name}://127.0.0.1:{number}" for name, number in doors.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_ada="{PASSWORD}";'
        ),
    }
    GUARDED[server.bootstrap] = f"127.0.0.1:{port}"
    with server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for tests that leave it running; each uses tables of its own."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    """A server for tests that leave it running; each uses keys of its own."""
    with RedisServer() as server:
        yield server
