"""Servers that are killed, restarted and stalled amid an epoch: it is there once in the end, and readers never see a part of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from headrace.connectors.kafka import client, epoch_producer
from headrace.ops.servers.kafka import KafkaServer
from headrace.ops.servers.postgres import PostgresServer
from headrace.ops.servers.redis import RedisServer
from headrace.ops.servers.server import LoopbackServer
from headrace.testing.conformance import COLUMNS, KEY, Subject
from headrace.testing.conformance.cases import expect
from headrace.testing.conformance.observer import observed
from headrace.testing.conformance.subject import SubjectWriter, made
from headrace.testing.conformance.victim import Victim
from tests.system.test_kafka_sink import KafkaSubject
from tests.system.test_postgres_sink import PostgresSubject
from tests.system.test_redis_sink import RedisSubject

STALL = timedelta(seconds=3)
Fault = Callable[[LoopbackServer], None]


def killed(server: LoopbackServer) -> None:
    server.kill()
    server.start()


def restarted(server: LoopbackServer) -> None:
    server.restart()


def stalled(server: LoopbackServer) -> None:
    """Longer than the clients of these tests wait for an answer."""
    server.pause()
    try:
        _pass(STALL)
    finally:
        server.resume()


FAULTS: tuple[Fault, ...] = (killed, restarted, stalled)


def endure(subject: Subject, server: LoopbackServer) -> int:
    """Let each fault happen when an epoch is written and not committed; how many epochs there were."""
    hand, before = SubjectWriter(subject), list[dict[str, object]]()
    hand.write(1, made(1))
    before = made(1)
    with observed(subject):
        for epoch, fault in enumerate(FAULTS, 2):
            writer = Victim(hand.output, hand.writer, epoch, made(epoch), f"{subject.stall}=delay(1)@1")
            writer.wait()
            fault(server)
            assert writer.end() == 0, f"the writer gave up: the server was {fault.__name__}"
            before = made(epoch) if subject.key else [*before, *made(epoch)]
            expect(subject, before)
            assert not hand.write(epoch, made(epoch))
    return len(FAULTS) + 1


def test_postgres() -> None:
    with PostgresServer() as server:
        endure(PostgresSubject(server, ()), server)


def test_redis() -> None:
    with RedisServer() as server:
        # What it was sent before it stalled it does when it wakes, and the writer has long asked again.
        endure(RedisSubject(server, query="?socket_timeout=1"), server)


@pytest.fixture
def closed() -> Iterator[None]:
    yield
    epoch_producer.producers.forget()
    client.forget()


@pytest.mark.usefixtures("closed")
def test_kafka() -> None:
    brokers = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
    with KafkaServer(settings=brokers) as server:
        endure(KafkaSubject(server, KEY, settings={"socket.timeout.ms": 1_000}), server)
        _a_read_goes_on_when_the_broker_comes_back(server)
        subject = KafkaSubject(server, (), settings={"transaction.timeout.ms": 1_000})
        with observed(subject):
            _a_transaction_that_took_too_long_is_done_again(subject)
            _a_writer_of_the_same_name_shuts_out_the_first(subject)


def _a_read_goes_on_when_the_broker_comes_back(server: KafkaServer) -> None:
    many = [{"user": "a", "n": number, "note": "x" * 100} for number in range(100_000)]
    subject = KafkaSubject(server, (), at_least_once=True)
    SubjectWriter(subject).write(1, many)
    source = subject.target.input(COLUMNS, None, "reader")
    end = {partition: last for partition, last in source.end().items() if last}
    ((partition, last),) = end.items()
    batches = source.read(partition, 0, last)
    found = next(batches).num_rows
    server.kill()
    # The planner of the next epoch asks while no broker is there.
    back = threading.Timer(0.5, server.start)
    back.start()
    assert source.end()[partition] == last
    back.join()
    assert found + sum(batch.num_rows for batch in batches) == len(many)


def _a_transaction_that_took_too_long_is_done_again(subject: Subject) -> None:
    hand = SubjectWriter(subject)
    late = Victim(hand.output, hand.writer, 1, made(1), f"{subject.stall}=delay(2.5)@1")
    assert late.end() == 0
    expect(subject, made(1))


def _a_writer_of_the_same_name_shuts_out_the_first(subject: Subject) -> None:
    hand = SubjectWriter(subject)
    first = Victim(hand.output, hand.writer, 2, made(2), f"{subject.stall}=delay(1)@1")
    first.wait()
    assert hand.write(2, made(2))
    assert first.end() == 0
    expect(subject, [*made(1), *made(2)])


def _pass(time: timedelta) -> None:
    """The stall itself is the fault: nothing can be waited for."""
    threading.Event().wait(time.total_seconds())
