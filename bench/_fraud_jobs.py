"""The fraud app as a job in a process of its own, over the log or over Kafka, and plain Spark with the same count rule."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.cli.demos.fraud.gateway import create
from headrace.cli.demos.fraud.rules import ALERTS, CARDS, PAYMENTS
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.phases import phases_of
from headrace.log import Log
from headrace.log.errors import UnknownTopic

HERE = Path(__file__).parent
APP = HERE.parent / "apps" / "fraud" / "app.py"
COUNTED = "counted"
Take = Callable[[dict[str, Any], float], None]


class LogWay:
    """Payments into topics of the log, on disk before the next are sent."""

    def __init__(self, log: Log) -> None:
        create(log)
        self._producer = log.producer(acks="all")

    def send_cards(self, cards: pa.Table) -> None:
        self._producer.send_table(CARDS, cards)

    def send(self, payments: pa.Table) -> None:
        self._producer.send_table(PAYMENTS, payments)


class KafkaWay:
    """Payments as JSON into topics of Kafka."""

    def __init__(self, servers: str) -> None:
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
        for made in admin.create_topics([NewTopic(PAYMENTS, 2, 1), NewTopic(CARDS, 1, 1), NewTopic(ALERTS, 2, 1)]).values():
            made.result(60)
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 1, "queue.buffering.max.messages": 1_000_000})

    def send_cards(self, cards: pa.Table) -> None:
        self._send(CARDS, cards)
        self._producer.flush()

    def send(self, payments: pa.Table) -> None:
        self._send(PAYMENTS, payments)

    def _send(self, topic: str, table: pa.Table) -> None:
        for row in table.to_pylist():
            if "paid_at" in row:
                row["paid_at"] = row["paid_at"].isoformat()
            self._producer.produce(topic, json.dumps(row).encode(), key=row["card"].encode())
        self._producer.poll(0)


@contextmanager
def fraud_job(home: Path, kafka: str | None = None) -> Iterator[Callable[[], int]]:
    """`headrace run` over a home; gives how many epochs it has committed."""
    # One shard: with small epochs, each further one costs time.
    environment = {**os.environ, "HEADRACE_HOME": str(home), "FRAUD_DISORDER": "0 seconds", "HEADRACE_MASTER": "local[1]"}
    if kafka is not None:
        environment["FRAUD_KAFKA"] = kafka
    place = JobDirectory(home, "fraud")
    with _process([sys.executable, "-m", "headrace", "run", str(APP)], home, environment) as alive:
        yield lambda: alive() and place.committed_epoch()


@contextmanager
def plain_spark(home: Path) -> Iterator[Callable[[], int]]:
    """Plain Spark over the same topic; gives how many alerts it has written, as a sign that it works."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])}
    with Log(home / "log") as log, _process([sys.executable, str(HERE / "_plain_count.py"), str(home)], home, environment) as alive:
        yield lambda: alive() and _end(log, COUNTED)


@contextmanager
def _process(command: list[str], home: Path, environment: dict[str, str]) -> Iterator[Callable[[], bool]]:
    """A process for as long as the block lasts; what it gives raises if the process has ended by itself."""
    with (home / "output.log").open("ab") as output:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=output)

    def alive() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"{command[1:3]} ended with code {process.returncode}: {(home / 'output.log').read_text()[-2000:]}")
        return True

    try:
        yield alive
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end(log: Log, topic: str) -> int:
    try:
        return sum(part["end"] for part in log.describe(topic)["partitions"])
    except UnknownTopic:
        return 0


def epoch_phases(home: Path) -> dict[str, float]:
    """The seconds that the last hundred epochs of the job took in each phase, on average."""
    phases = list(phases_of(JobDirectory(home, "fraud").path).values())[-100:]
    return {name: round(sum(one[name] for one in phases) / len(phases), 4) for name in phases[0]} if phases else {}


@contextmanager
def watched(home: Path, topic: str, take: Take) -> Iterator[None]:
    """Take in every record of a topic of the log as it becomes readable."""
    with Log(home / "log") as log, _thread(lambda stopped: _follow_log(log, topic, take, stopped)):
        yield


@contextmanager
def watched_kafka(servers: str, take: Take) -> Iterator[None]:
    """Take in every committed alert in Kafka."""
    with _thread(lambda stopped: _follow_kafka(servers, take, stopped)):
        yield


@contextmanager
def _thread(work: Callable[[threading.Event], None]) -> Iterator[None]:
    stopped = threading.Event()
    thread = threading.Thread(target=work, args=(stopped,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _follow_log(log: Log, topic: str, take: Take, stopped: threading.Event) -> None:
    while not _end(log, topic) and not stopped.wait(0.05):
        pass
    if stopped.is_set():
        return
    consumer = log.consumer(topic, start="beginning")
    while not stopped.is_set():
        found = consumer.poll(timeout="100ms")
        now = time.time()
        for row in found.to_pylist() if found is not None else []:
            take(row, now)


def _follow_kafka(servers: str, take: Take, stopped: threading.Event) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench", "isolation.level": "read_committed", "fetch.wait.max.ms": 10})
    consumer.assign([TopicPartition(ALERTS, partition, 0) for partition in range(2)])
    while not stopped.is_set():
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            take(json.loads(message.value()), time.time())
    consumer.close()
