"""Kafka's clients as this package uses them: one of a kind a process, and errors that say what to do."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from headrace.connectors.kafka.declaration import KafkaTopic
from headrace.core.errors import ConnectorError
from headrace.core.secret import Secret

TIMEOUT = 30.0
_PAUSE = 0.1
Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)
_clients: dict[tuple[object, ...], Any] = {}


def consumer(source: KafkaTopic, group: str) -> Any:
    """This process's consumer for a source. It belongs to the group only to commit; partitions are assigned by hand."""
    from confluent_kafka import Consumer

    return _one("consumer", source, group, lambda: Consumer({**client_settings(source),
        "group.id": group,
        "isolation.level": source.isolation,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        # A position that retention has removed is an error, never another place.
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 100,
        # Ranges end somewhere: what is fetched behind them was for nothing.
        "queued.min.messages": 20_000,
        # When so many wait the client looks again after this, and not after a second: that made reading eight times as slow.
        "fetch.queue.backoff.ms": 2,
    }, logger=_log))  # fmt: skip


def admin(source: KafkaTopic) -> Any:
    """This process's admin client for a source."""
    from confluent_kafka.admin import AdminClient

    return _one("admin", source, "", lambda: AdminClient(client_settings(source), logger=_log))


@contextmanager
def told(source: KafkaTopic, what: str) -> Iterator[None]:
    """Turn the client's errors into ours."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise failure(source, what, str(error.args[0])) from error


def patiently(source: KafkaTopic, what: str, ask: Callable[[], Answer], seconds: float) -> Answer:
    """Ask again where the brokers are only busy: they choose a leader, or start."""
    from confluent_kafka import KafkaError, KafkaException

    # _NOENT: no partition had a leader when the client looked. UNSTABLE_OFFSET_COMMIT: a transaction is about to commit.
    passing = (KafkaError._NOENT, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNSTABLE_OFFSET_COMMIT)  # noqa: SLF001 - its public name
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except KafkaException as error:
            cause = error.args[0]
            busy = cause.retriable() or cause.code() in passing
            if not busy or time.monotonic() > deadline:
                raise failure(source, what, str(cause)) from error
        time.sleep(_PAUSE)


def failure(source: KafkaTopic, what: str, why: str) -> ConnectorError:
    return ConnectorError(f"{what} topic {source.topic!r} on {source.servers} failed: {why}", hint="look at the brokers, and at settings=")


def _one(kind: str, source: KafkaTopic, group: str, make: Callable[[], Any]) -> Any:
    # A client's threads do not survive a fork.
    known = (os.getpid(), kind, group, source.servers, source.isolation, *sorted(source.settings.items(), key=lambda item: item[0]))
    if known not in _clients:
        with told(source, "connecting to"):
            _clients[known] = make()
    return _clients[known]


def client_settings(source: KafkaTopic) -> dict[str, Any]:
    given = {name: value.reveal() if isinstance(value, Secret) else value for name, value in source.settings.items()}
    return {"bootstrap.servers": source.servers, "client.id": "headrace", "log_level": 3, **given}


def forget() -> None:
    """Close the clients of this process."""
    for known in list(_clients):
        client = _clients.pop(known)
        if known[:2] == (os.getpid(), "consumer"):
            client.close()
