"""Servers that the system tests share, each started once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.ops.servers.kafka import KafkaServer
from headrace.ops.servers.opensearch import OpenSearchServer
from headrace.ops.servers.ports import free_ports
from headrace.ops.servers.postgres import PostgresServer
from headrace.ops.servers.redis import RedisServer
from tests.support.certificates import certified

PASSWORD = "open-s3same"
GUARDED: dict[str, str] = {}
"""Where the broker of the tests takes in `ada` with the password, by where it takes in anybody."""
ENCRYPTED: dict[str, tuple[str, dict[str, str]]] = {}
"""Where it speaks TLS, and with what a client says who it is, by the same."""


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A broker for tests that leave it running; each uses topics of its own."""
    server = KafkaServer()
    # Who comes by the second door has to say who it is; by the third, to show a certificate.
    guarded, encrypted = free_ports(2)
    doors = {
        "PLAINTEXT": server._broker_port, "CONTROLLER": server._controller_port, "SASL_PLAINTEXT": guarded, "SSL": encrypted,
    }  # fmt: skip
    server._settings |= {
        "listeners": ",".join(f"{name}://127.0.0.1:{number}" for name, number in doors.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_ada="{PASSWORD}";'
        ),
    }
    certificates, client = _tls(tmp_path_factory.mktemp("tls"))
    server._settings |= certificates
    GUARDED[server.bootstrap] = f"127.0.0.1:{guarded}"
    ENCRYPTED[server.bootstrap] = f"127.0.0.1:{encrypted}", client
    with server:
        yield server


def _tls(directory: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The settings of a broker that asks for certificates, and those of a client that has one."""
    broker, client = certified(directory, "broker"), certified(directory, "client", PASSWORD)
    both = directory / "broker-key-and-certificate.pem"
    both.write_text(broker.key.read_text() + broker.certificate.read_text())
    asks = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(client.certificate),
        "ssl.client.auth": "required",
    }
    shows = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(broker.certificate),
        "ssl.certificate.location": str(client.certificate),
        "ssl.key.location": str(client.key),
        "ssl.key.password": PASSWORD,
    }
    return asks, shows


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


@pytest.fixture(scope="session")
def opensearch() -> Iterator[OpenSearchServer]:
    """A node for tests that leave it running; each uses an index of its own."""
    with OpenSearchServer() as server:
        yield server
