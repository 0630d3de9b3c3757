"""A topic of a real broker as the input of a job."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from pyspark.sql.streaming.datasource import ReadAllAvailable

import headrace as hr
from headrace.connectors.kafka import client
from headrace.connectors.kafka.input import LOOK_BACK, KafkaInput
from headrace.core.clock import ManualClock
from headrace.core.columns.schema import schema
from headrace.core.errors import ConnectorError, SettingsError
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.start.assembly import job_of
from headrace.ops.servers.kafka import KafkaServer
from headrace.spark.source import JobReader
from tests.support.in_process import InProcess
from tests.support.processes import until
from tests.system.conftest import GUARDED, PASSWORD

FOREVER = 2**62
COLUMNS = "n bigint, at timestamp(us)"
MINUTE, SECOND = 60_000_000, 1_000_000


class Topic:
    """A topic of its own for each test."""

    def __init__(self, server: KafkaServer, name: str) -> None:
        self.server, self.name = server, name
        self.admin = AdminClient({"bootstrap.servers": server.bootstrap})

    def create(self, partitions: int = 1, **config: str) -> Topic:
        new = NewTopic(self.name, partitions, 1, config={name.replace("_", "."): value for name, value in config.items()})
        self.admin.create_topics([new])[self.name].result(30)
        return self

    def send(self, *values: bytes | None, partition: int = 0, **more: Any) -> None:
        producer = Producer({"bootstrap.servers": self.server.bootstrap})
        failed: list[Any] = []
        for value in values:
            producer.produce(self.name, value, partition=partition, on_delivery=lambda error, _: failed.append(error), **more)
        assert producer.flush(30) == 0
        assert set(failed) == {None}

    def grow(self, partitions: int) -> None:
        """Add partitions, and wait until clients are told of them: a record for one that is not known yet is not sent."""
        self.admin.create_partitions([NewPartitions(self.name, partitions)])[self.name].result(30)
        until(lambda: len(self.admin.list_topics(self.name, 30).topics[self.name].partitions) == partitions)

    def committed(self, group: str, partitions: int) -> list[int]:
        """What a group has committed."""
        other = Consumer({"bootstrap.servers": self.server.bootstrap, "group.id": group})
        found = other.committed([TopicPartition(self.name, partition) for partition in range(partitions)], 30)
        other.close()
        return [place.offset for place in found]

    def times(self, *minutes: float, partition: int = 0) -> None:
        self.send(*(json.dumps({"n": 1, "at": int(minute * MINUTE)}).encode() for minute in minutes), partition=partition)

    def input(self, *, time: str | None = "at", **options: Any) -> KafkaInput:
        source = hr.kafka(self.name, servers=self.server.bootstrap, **options)
        return source.input(schema(COLUMNS), time, self.name)


@pytest.fixture
def topic(kafka: KafkaServer, request: pytest.FixtureRequest) -> Iterator[Topic]:
    yield Topic(kafka, "".join(letter for letter in request.node.name if letter.isalnum())[:200])
    client.forget()


def read(source: KafkaInput, partition: int, first: int, last: int) -> list[dict[str, Any]]:
    return [row for batch in source.read(partition, first, last) for row in batch.to_pylist()]


def numbers(source: KafkaInput, partition: int, first: int, last: int) -> list[int]:
    return [row["n"] for row in read(source, partition, first, last)]


def test_a_job_is_observed_while_it_plans(kafka: KafkaServer, request: pytest.FixtureRequest) -> None:
    topic = Topic(kafka, f"observed-{request.node.name}").create(partitions=2)
    for partition in (0, 1):
        topic.send(*(json.dumps({"n": n, "at": n}).encode() for n in range(300)), partition=partition)
    planned, observed = (hr.kafka(topic.name, servers=kafka.bootstrap).input(schema(COLUMNS), "at", "app") for _ in range(2))
    found: dict[str, list[Any]] = {"planned": [], "observed": []}

    def look(name: str, source: Any) -> None:
        for start in range(0, 250, 5):
            found[name].append(dict(source.ahead({0: start, 1: start}, {0: start + 40, 1: start + 7}, None, FOREVER).latest))

    threads = [threading.Thread(target=look, args=each) for each in (("planned", planned), ("observed", observed))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found["planned"] == found["observed"] == [{0: start + 39, 1: start + 6} for start in range(0, 250, 5)]
    # What ended threads used is closed when another one begins.
    client.consumer(planned.source, "app")
    idents = {known[2] for known in client._clients if known[1] == "consumer"}
    assert idents <= {thread.ident for thread in threading.enumerate()}


def test_a_range_gives_the_same_records_every_time(topic: Topic) -> None:
    topic.create(2)
    topic.send(*(b'{"n":%d}' % number for number in range(1_000)), partition=0)
    topic.send(b'{"n":-1}', b"oops", partition=1)
    source = topic.input(time=None)
    assert source.beginning() == {0: 0, 1: 0}
    assert source.end() == {0: 1_000, 1: 2}
    for first, last in [(0, 1_000), (17, 18), (400, 999), (999, 1_000), (5, 5)]:
        assert numbers(source, 0, first, last) == list(range(first, last))
    bad = read(source, 1, 0, 2)[1]
    assert (bad["n"], bad["_offset"], bad["_partition"]) == (None, 1, 1)
    assert "not JSON" in bad["_problem"]
    assert json.loads(bad["_record"])["value"] == "oops"


@pytest.mark.parametrize("time", [None, "at"])
def test_an_epoch_reads_about_as_many_bytes_as_it_may_whatever_the_size_of_records(topic: Topic, time: str | None) -> None:
    topic.create(2)
    # Records of a kilobyte, then of ten: an epoch has ten times as many of the former.
    for size in (1_000, 10_000):
        for partition in (0, 1):
            topic.send(*(json.dumps({"n": n, "at": n, "pad": "x" * size}).encode() for n in range(1_000)), partition=partition)
    source = replace(topic.input(time=time), epoch_bytes=1_000_000)
    position, taken = source.beginning(), list[int]()
    while (ahead := source.ahead(position, source.end(), None, FOREVER)).position != position:
        taken.append(sum(ahead.position.values()) - sum(position.values()))
        position = ahead.position
    assert position == {0: 2_000, 1: 2_000}
    assert taken[0] == pytest.approx(970, rel=0.1)
    assert taken[-2] == pytest.approx(100, rel=0.1)
    # Those at the border are taken by the size of the records before them.
    assert 22 <= len(taken) <= 26
    small = replace(source, epoch_bytes=1)
    assert sum(small.ahead({0: 0, 1: 0}, source.end(), None, FOREVER).position.values()) == 2
    assert replace(source, epoch_bytes=None).ahead({0: 0, 1: 0}, source.end(), None, FOREVER).position == source.end()


def test_only_committed_transactions_are_read_and_markers_are_no_gap(topic: Topic) -> None:
    topic.create()
    producer = Producer({"bootstrap.servers": topic.server.bootstrap, "transactional.id": topic.name})
    producer.init_transactions(30)
    for number, end in enumerate([producer.commit_transaction, producer.abort_transaction, producer.commit_transaction]):
        producer.begin_transaction()
        producer.produce(topic.name, b'{"n":%d}' % number)
        assert producer.flush(30) == 0
        end(30)
    producer.begin_transaction()
    producer.produce(topic.name, b'{"n":3}')
    assert producer.flush(30) == 0
    source = topic.input(time=None)
    # Three records with a marker behind each; the open transaction is not there yet.
    assert source.end() == {0: 6}
    assert numbers(source, 0, 0, 6) == [0, 2]
    assert numbers(source, 0, 1, 4) == []
    assert topic.input(time=None, isolation="read_uncommitted").end() == {0: 7}
    assert numbers(topic.input(time=None, isolation="read_uncommitted"), 0, 0, 7) == [0, 1, 2, 3]
    producer.abort_transaction(30)


def test_a_job_may_begin_at_an_offset_or_a_moment(topic: Topic) -> None:
    topic.create(2)
    for moment in (1_000, 2_000, 3_000):
        topic.send(b"{}", timestamp=moment)
    assert topic.input(start="latest").beginning() == {0: 3, 1: 0}
    assert topic.input(start=datetime.fromtimestamp(2, UTC)).beginning() == {0: 1, 1: 0}
    assert topic.input(start=datetime.fromtimestamp(9, UTC)).beginning() == {0: 3, 1: 0}
    assert topic.input(start={0: 2}).beginning() == {0: 2, 1: 0}
    with pytest.raises(SettingsError, match="no offset 0 in partition 7"):
        topic.input(start={7: 0}).beginning()


def test_partitions_that_are_added_are_found(topic: Topic) -> None:
    topic.create(1)
    source = topic.input()
    assert source.end() == {0: 0}
    topic.grow(3)
    topic.times(1, partition=2)
    assert source.end() == {0: 0, 1: 0, 2: 1}
    assert source.ahead({0: 0}, source.end(), None, FOREVER).latest == {2: MINUTE}


def test_a_partition_that_is_new_begins_where_retention_left_it(topic: Topic, tmp_path: Path) -> None:
    topic.create(1)
    topic.times(1)
    app = hr.App("late-comer", home=tmp_path)
    records = app.stream("records", COLUMNS, source=hr.kafka(topic.name, servers=topic.server.bootstrap))
    app.view("numbers", records, key="n")
    reader = JobReader(job_of(app.plan(), Record("late-comer-1", 2, 1, ""), app.log, until=None))
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    topic.grow(2)
    topic.times(1, 2, 3, partition=1)
    place = TopicPartition(topic.name, 1, 2)
    topic.admin.delete_records([place])[place].result(30)
    end = reader.latestOffset(start, ReadAllAvailable())
    shares = [part for task in reader.partitions(start, json.loads(json.dumps(end))) for part in task.value[1]]
    assert [(part.partition, part.first, part.last) for part in shares] == [(1, 2, 3)]


def test_clients_say_who_they_are_and_are_told_why_they_are_not_let_in_without_the_password(topic: Topic) -> None:
    topic.create()
    topic.times(1)
    said = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ada"}

    def guarded(password: str) -> KafkaInput:
        source = hr.kafka(topic.name, servers=GUARDED[topic.server.bootstrap], settings={**said, "sasl.password": password}, patience="30s")
        return source.input(schema(COLUMNS), None, topic.name)

    assert guarded(PASSWORD).end() == {0: 1}
    assert numbers(guarded(PASSWORD), 0, 0, 1) == [1]
    other = PASSWORD[::-1]
    with pytest.raises(ConnectorError, match="Authentication failed") as refused:
        guarded(other).end()
    assert other not in "".join(traceback.format_exception(refused.value)) + repr(guarded(other))


def test_the_planner_knows_the_latest_time_of_each_partition(topic: Topic) -> None:
    topic.create(3)
    topic.times(5, 9, 7, partition=0)
    topic.times(2, 100, partition=1)
    source = topic.input()
    ahead = source.ahead(source.beginning(), source.end(), None, 50 * MINUTE)
    assert ahead.position == {0: 3, 1: 2, 2: 0}
    assert ahead.latest == {0: 9 * MINUTE, 1: 2 * MINUTE}
    assert source.ahead({0: 2, 1: 2, 2: 0}, source.end(), None, FOREVER).latest == {0: 7 * MINUTE}


def test_of_a_long_range_the_end_tells_the_time_and_what_is_bad_there_is_passed_over(topic: Topic) -> None:
    topic.create()
    topic.times(*range(LOOK_BACK * 3))
    source = topic.input()
    assert source.ahead({0: 0}, source.end(), None, FOREVER).latest == {0: (LOOK_BACK * 3 - 1) * MINUTE}
    topic.send(*[b"oops"] * (LOOK_BACK + 5))
    assert source.ahead({0: 0}, source.end(), None, FOREVER).latest == {0: (LOOK_BACK * 3 - 1) * MINUTE}
    end = source.end()
    assert source.ahead({0: end[0] - 3}, end, None, FOREVER).latest == {}


def test_the_time_may_be_that_of_kafka(topic: Topic) -> None:
    topic.create()
    topic.send(b"{}", b"{}", timestamp=60_000)
    assert topic.input(timestamp_as="at").ahead({0: 0}, {0: 2}, None, FOREVER).latest == {0: MINUTE}


def test_an_epoch_takes_in_no_more_than_it_may(topic: Topic) -> None:
    topic.create(2)
    topic.times(*range(80), partition=0)
    topic.times(*range(20), partition=1)
    source = topic.input(rows_per_epoch=50)
    assert source.ahead({0: 0, 1: 0}, source.end(), None, FOREVER).position == {0: 40, 1: 10}
    assert source.ahead({0: 0, 1: 0}, source.end(), 10, FOREVER).position == {0: 8, 1: 2}


def test_kafkas_tools_see_how_far_a_job_is(topic: Topic) -> None:
    topic.create()
    topic.times(1, 2, 3)
    topic.input(group="billing").done({0: 2})
    assert topic.committed("billing", 1) == [2]


def test_records_that_retention_took_are_an_error_not_a_gap(topic: Topic) -> None:
    topic.create()
    topic.times(1, 2, 3)
    place = TopicPartition(topic.name, 0, 2)
    topic.admin.delete_records([place])[place].result(30)
    with pytest.raises(ConnectorError, match=r"2 records from offset 0 to 1 of partition 0 of topic .* are gone"):
        read(topic.input(), 0, 0, 3)
    assert numbers(topic.input(), 0, 2, 3) == [1]


def test_a_topic_that_was_made_anew_is_refused_and_one_that_ends_before_the_position_too(
    topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.create(1)
    topic.times(*range(10))
    app = hr.App("made-anew", home=tmp_path)
    records = app.stream("records", COLUMNS, source=hr.kafka(topic.name, servers=topic.server.bootstrap))
    app.sink(records, hr.log("kept"))
    job = InProcess(app, ManualClock())
    job.catch_up()
    with monkeypatch.context() as patch:
        patch.setattr(KafkaInput, "end", lambda self: {0: 8})
        with pytest.raises(ConnectorError, match="ends at offset 8, and the job has read up to 10: 2 records gone"):
            job.plan()
    topic.admin.delete_topics([topic.name])[topic.name].result(30)
    _until_gone(topic)
    topic.create(1)
    topic.times(*range(20))
    with pytest.raises(ConnectorError, match="is not the one that job 'made-anew' has read"):
        InProcess(app, ManualClock(), reached=job.reached).plan()


def _until_gone(topic: Topic) -> None:
    until(lambda: topic.name not in topic.admin.list_topics(timeout=30).topics)


def test_a_record_that_was_aborted_does_not_tell_the_time(topic: Topic) -> None:
    topic.create()
    topic.times(1)
    producer = Producer({"bootstrap.servers": topic.server.bootstrap, "transactional.id": topic.name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic.name, json.dumps({"n": 1, "at": 50 * MINUTE}).encode())
    assert producer.flush(30) == 0
    source = topic.input()
    assert source.ahead({0: 0}, source.end(), None, FOREVER).latest == {0: MINUTE}
    producer.abort_transaction(30)
    # The broker writes the marker after it has answered.
    until(lambda: source.end() == {0: 3})
    assert source.ahead({0: 0}, source.end(), None, FOREVER).latest == {0: MINUTE}


def test_a_compacted_topic_has_no_gaps_that_stop_a_reader(topic: Topic) -> None:
    topic.create(cleanup_policy="compact", segment_ms="1", min_cleanable_dirty_ratio="0.01", delete_retention_ms="1")
    topic.send(*(b'{"n":%d}' % number for number in range(50)), key=b"same")
    end = topic.input().end()
    # Whatever the broker has compacted so far: the last record is there, and the read ends.
    assert numbers(topic.input(), 0, 0, end[0])[-1] == 49


def test_a_topic_that_is_not_there_and_a_broker_that_is_not_are_named(topic: Topic) -> None:
    with pytest.raises(ConnectorError, match="there is no topic"):
        topic.input().end()
    nowhere = hr.kafka("t", servers="127.0.0.1:9", patience="1s").input(schema(COLUMNS), "at", "a")
    for use in (nowhere.end, lambda: read(nowhere, 0, 0, 1)):
        with pytest.raises(ConnectorError, match=r"127\.0\.0\.1:9"):
            use()


@pytest.mark.usefixtures("spark")
def test_an_app_counts_what_kafka_has_waits_for_a_slow_topic_and_learns_how_late_it_is(topic: Topic, tmp_path: Any) -> None:
    topic.create(2)
    topic.send(*(b'{"card":"%d","at":%d}' % (number % 3, number * SECOND) for number in range(600)), partition=0)
    topic.send(*(b'{"card":"%d","at":%d}' % (number % 3, number * SECOND) for number in range(300)), b"oops", partition=1)
    # One in four is ten seconds behind the one before it, and one of all nearly five minutes.
    times = [10 * number - (300 if number == 41 else 20 if number % 4 == 2 else 0) for number in range(80)]
    refunds = Topic(topic.server, f"{topic.name}-refunds").create()
    refunds.times(*(time / 60 for time in times))
    app = hr.App("cards", home=tmp_path)
    payments = app.stream(
        "payments",
        schema="card string, at timestamp(us)",
        time="at",
        watermark=hr.bounded("10 seconds", idle="10 minutes"),
        source=hr.kafka(topic.name, servers=topic.server.bootstrap),
        align="1 minute",
    )
    paid_back = app.stream(
        "refunds",
        schema=COLUMNS,
        time="at",
        watermark=hr.loss_budget(0.05, max="1 hour", idle="10 minutes"),
        source=hr.kafka(refunds.name, servers=topic.server.bootstrap, rows_per_epoch=20),
    )
    users = Topic(topic.server, f"{topic.name}-users").create(2)
    users.send(b'{"id":1,"name":"old"}', b'{"id":1,"name":"ada"}', key=(1).to_bytes(8), partition=0)
    users.send(b'{"id":2,"name":"bob"}', None, key=(2).to_bytes(8), partition=1)
    users.send(None, key=b"who?", partition=1)
    users_now = app.table("users_now", "id bigint, name string", key="id", source=hr.kafka(users.name, servers=users.server.bootstrap))
    app.view("users", users_now)
    app.view("per_card", payments.window(hr.tumbling("5 minutes"), by="card").agg(payments="count(*)"))
    app.view("refunds_per_minute", paid_back.window(hr.tumbling("1 minute")).agg(refunds="count(*)"))
    report = app.run(until="end", rows_per_epoch=400)
    rows = app.read("per_card").to_pylist()
    assert sorted((row["card"], row["window_start"].minute, row["payments"]) for row in rows) == [
        (card, start, count) for card in "012" for start, count in ((0, 200), (5, 100))
    ]
    assert app.read("users").to_pylist() == [{"id": 1, "name": "ada"}]
    [lost] = app.log.read("users_now.dead").to_pylist()
    assert "tombstone" in lost["reason"]
    [letter] = app.log.read("payments.dead").to_pylist()
    assert (letter["partition"], letter["offset"], json.loads(letter["record"])["value"]) == (1, 300, "oops")
    [taken] = [row for row in report.accounting if row["step"] == "payments"]
    assert (taken["in"], taken["out"], taken["dead_letter"]) == (901, 900, 1)
    assert topic.committed("headrace-cards", 2) == [600, 301]
    # Four of the eighty may be lost, so the bound is that of the others; the bins of what was learned are a tenth apart.
    assert 10 <= report.bounds["refunds"].total_seconds() < 11.5
    [late] = app.log.read("refunds.late").to_pylist()
    assert late["at"] == datetime.fromtimestamp(times[41], UTC)
    assert sum(row["refunds"] for row in app.read("refunds_per_minute").to_pylist()) == len(times) - 1
    _read_no_further_than_the_slow_one(app, times)


def _read_no_further_than_the_slow_one(app: hr.App, times: list[int]) -> None:
    """Of each epoch: payments are at most a minute ahead of the refund that comes next."""
    record = JobDirectory(app.settings.home, app.name).record()
    assert record is not None
    taken: dict[str, dict[int, int]] = {"payments": {}, "refunds": {}}
    for row in JobAccounting(app.log, app.name, record).epochs().to_dicts():
        if row["step"] in taken:
            taken[row["step"]][row["epoch"]] = row["in"]
    read, epochs_waited = {"payments": 0, "refunds": 0}, 0
    for epoch in range(1, max(max(counts) for counts in taken.values()) + 1):
        before = read["refunds"]
        read = {name: read[name] + counts.get(epoch, 0) for name, counts in taken.items()}
        if before < len(times):
            furthest = max(times[: before + 1]) + 60
            assert read["payments"] <= min(600, furthest + 1) + min(301, furthest + 1)
            epochs_waited += 1
    assert epochs_waited == len(times) // 20
