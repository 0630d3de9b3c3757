"""Servers that the system tests share, each started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.ops.servers.kafka import KafkaServer
from headrace.ops.servers.postgres import PostgresServer
from headrace.ops.servers.redis import RedisServer


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    """A broker for tests that leave it running; each uses topics of its own."""
    with KafkaServer() as server:
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
