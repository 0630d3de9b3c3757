"""Kafka's clients as this package uses them: kept by the process that made them, and errors that say what to do."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from headrace.connectors.kafka.declaration import KafkaTopic
from headrace.core.errors import ConnectorError
from headrace.core.secret import Secret

TIMEOUT = 30.0
_ONCE, _PAUSE = 5.0, 0.1
# Errors that pass on their own: brokers that are away or restart; _NOENT, no partition had a leader when the client looked;
# UNSTABLE_OFFSET_COMMIT, a transaction is about to commit; UNKNOWN_LEADER_EPOCH and FENCED_LEADER_EPOCH, the client and a broker that has
# just started do not yet know of the same election.
_PASSING = ("_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_SSL", "_WAIT_COORD", "_NOENT", "REQUEST_TIMED_OUT",
            "NETWORK_EXCEPTION", "BROKER_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "NOT_COORDINATOR",
            "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "UNSTABLE_OFFSET_COMMIT",
            "UNKNOWN_LEADER_EPOCH", "FENCED_LEADER_EPOCH")  # fmt: skip
Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)
_clients: dict[tuple[object, ...], Any] = {}
_refusals: dict[str, str] = {}
"""Why brokers did not let a client in, by their addresses."""


def consumer(source: KafkaTopic, group: str) -> Any:
    """This thread's consumer for a source. It belongs to the group only to commit; partitions are assigned explicitly.

    A job plans in one thread and is observed in another: with one consumer, each would take the partitions of the other away.
    """
    from confluent_kafka import Consumer

    _close_abandoned()
    return _one("consumer", source, (threading.get_ident(), group), lambda: Consumer({**client_settings(source),
        "group.id": group,
        "isolation.level": source.isolation,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        # A position that retention has removed is an error, never replaced by another position.
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 100,
        # Ranges have an end: records fetched after it would be wasted.
        "queued.min.messages": 20_000,
        # With this many records waiting, the client fetches again after this interval instead of a second, which made reading eight times
        # as slow.
        "fetch.queue.backoff.ms": 2,
        "error_cb": partial(_heard, source),
    }, logger=_log))  # fmt: skip


def admin(source: KafkaTopic) -> Any:
    """This process's admin client for a source."""
    from confluent_kafka.admin import AdminClient

    settings: dict[str, Any] = {**client_settings(source), "error_cb": partial(_heard, source)}
    return _one("admin", source, (), lambda: AdminClient(settings, logger=_log))


@contextmanager
def translated(source: KafkaTopic, what: str) -> Iterator[None]:
    """Convert the client's errors into ours."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise failure(source, what, error.args[0].str()) from error


def patiently(source: KafkaTopic, what: str, ask: Callable[[], Answer]) -> Answer:
    """Repeat a request, for as long as the source's patience, while the brokers are away or busy: they elect a leader, or start."""
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + source.patience.total_seconds()
    while True:
        try:
            return ask()
        except KafkaException as error:
            # The reason for a refused connection arrives only in the background.
            admin(source).poll(0)
            cause = error.args[0]
            if source.servers in _refusals or not passing(cause) or time.monotonic() > deadline:
                raise failure(source, what, cause.str()) from error
        time.sleep(_PAUSE)


def topic_of(source: KafkaTopic) -> Any:
    """The brokers' description of a topic; its `error` says if it does not exist."""
    return patiently(source, "looking for", lambda: admin(source).list_topics(source.topic, within(source)).topics[source.topic])


def topic_id(source: KafkaTopic) -> str:
    """The id that the brokers gave a topic when it was created: another one of the same name has a different id."""
    from confluent_kafka import KafkaException, TopicCollection

    def ask() -> str:
        answers = admin(source).describe_topics(TopicCollection([source.topic]), request_timeout=within(source))
        return str(answers[source.topic].result(TIMEOUT).topic_id)

    try:
        return patiently(source, "looking for", ask)
    except ConnectorError as error:
        cause = error.__cause__
        if isinstance(cause, KafkaException) and cause.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
            raise missing(source, cause.args[0].str()) from error
        raise


def missing(source: KafkaTopic, why: str) -> ConnectorError:
    return ConnectorError(f"there is no topic {source.topic!r} on {source.servers}: {why}", hint="create it, or correct its name")


def within(source: KafkaTopic) -> float:
    """The seconds that one request may take: few, because the reason for a refused connection is read between requests."""
    return min(_ONCE, source.patience.total_seconds())


def passing(cause: Any) -> bool:
    """Whether an error passes on its own."""
    return cause.retriable() or cause.name() in _PASSING


def failure(source: KafkaTopic, what: str, why: str) -> ConnectorError:
    refused = _refusals.pop(source.servers, None)
    return ConnectorError(
        f"{what} topic {source.topic!r} on {source.servers} failed: {why}{f' ({refused})' if refused else ''}",
        hint="check the brokers, and settings=",
    )


def _heard(source: KafkaTopic, error: Any) -> None:
    """Keep an error that a client receives in the background, if it says that the connection was refused."""
    if error.name() == "_AUTHENTICATION":
        _refusals[source.servers] = error.str()


def _one(kind: str, source: KafkaTopic, purpose: tuple[object, ...], make: Callable[[], Any]) -> Any:
    # A client's threads do not survive a fork.
    known = (os.getpid(), kind, *purpose, source.servers, source.isolation, *sorted(source.settings.items(), key=lambda item: item[0]))
    if known not in _clients:
        with translated(source, "connecting to"):
            _clients[known] = make()
    return _clients[known]


def _close_abandoned() -> None:
    """Close the consumers of threads that have ended."""
    alive = {thread.ident for thread in threading.enumerate()}
    for known in [known for known in list(_clients) if known[:2] == (os.getpid(), "consumer") and known[2] not in alive]:
        _clients.pop(known).close()


def client_settings(source: KafkaTopic) -> dict[str, Any]:
    given = {name: value.reveal() if isinstance(value, Secret) else value for name, value in source.settings.items()}
    return {"bootstrap.servers": source.servers, "client.id": "headrace", "log_level": 3, **given}


def forget() -> None:
    """Close the clients of this process."""
    for known in list(_clients):
        client = _clients.pop(known)
        if known[:2] == (os.getpid(), "consumer"):
            client.close()
