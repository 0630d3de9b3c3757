"""The Kafka broker that tests and benchmarks start."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.core.errors import ConnectorError
from headrace.ops.servers.kafka import KafkaServer


def create_topic(server: KafkaServer, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for created in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        created.result(30)


def produce(server: KafkaServer, topic: str, values: list[bytes]) -> None:
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": server.bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(60) == 0
    assert failures == []


def consume(server: KafkaServer, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while len(values) < count:
        messages = consumer.consume(count - len(values), 30)
        assert messages, f"only {len(values)} of {count} records came"
        values += [message.value() for message in messages]
    consumer.close()
    return values


def wait_for_end_of(pid: int, seconds: float) -> bool:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        # `select` knows only the first 1,024 descriptors.
        poll = select.poll()
        poll.register(process, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(process)


def test_records_come_back_in_the_order_they_were_sent(kafka: KafkaServer) -> None:
    values = [f"record {number}".encode() for number in range(1000)]
    create_topic(kafka, "round-trip")
    produce(kafka, "round-trip", values)
    assert consume(kafka, "round-trip", 1000) == values


def test_asking_for_a_topic_does_not_create_it(kafka: KafkaServer) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    assert admin.list_topics("misspelt", 30).topics["misspelt"].error is not None
    assert "misspelt" not in admin.list_topics(timeout=30).topics


def test_acknowledged_records_survive_a_kill_and_a_restart_and_nothing_is_left_when_the_block_ends() -> None:
    with KafkaServer() as server:
        address, first_pid, directory = server.bootstrap, server.pid, server.directory
        create_topic(server, "kept")
        produce(server, "kept", [b"before the crash"])
        server.kill()
        assert not server.alive
        server.restart()
        assert server.bootstrap == address
        assert server.pid != first_pid
        produce(server, "kept", [b"after it"])
        assert consume(server, "kept", 2) == [b"before the crash", b"after it"]
        pid = server.pid
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()
    assert not directory.exists()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [child for child in children if str(directory) in Path(f"/proc/{child}/cmdline").read_text()]


def test_a_paused_broker_is_silent_until_it_is_resumed(kafka: KafkaServer) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    kafka.pause()
    try:
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=1)
    finally:
        kafka.resume()
    assert len(admin.list_topics(timeout=30).brokers) == 1


def test_nothing_is_left_when_the_parent_is_killed() -> None:
    program = """
from headrace.ops.servers.kafka import KafkaServer
with KafkaServer() as server:
    print(server.pid, server._server._watchdog.pid, server.directory, flush=True)
    input()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        broker, watchdog, directory = parent.stdout.readline().split()
        parent.send_signal(signal.SIGKILL)
    assert wait_for_end_of(int(broker), 30)
    assert wait_for_end_of(int(watchdog), 30)
    assert not Path(directory).exists()


def test_a_broker_that_does_not_come_up_shows_the_end_of_its_log() -> None:
    server = KafkaServer()
    host, port = server.bootstrap.split(":")
    with (
        socket.create_server((host, int(port))),
        pytest.raises(ConnectorError, match=r"(?s)kafka ended with code 1 .*Address already in use"),
        server,
    ):
        pass
    assert not server.directory.exists()
