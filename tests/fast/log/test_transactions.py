"""Transactions: all of it or nothing, over several topics, with one writer a name."""

import threading
from contextlib import suppress
from datetime import timedelta

import pyarrow as pa
import pytest

from headrace.core import failpoints
from headrace.core.clock import ManualClock
from headrace.core.errors import LogError, SchemaError
from headrace.log import Log
from headrace.log.errors import DiskFailed, Fenced, TransactionState
from tests.support.processes import PATIENCE


@pytest.fixture
def log(tmp_path, clock):
    log = Log(tmp_path / "log", clock=clock)
    log.create_topic("a")
    log.create_topic("b", partitions=3)
    return log


@pytest.fixture
def faults():
    """Switch failpoints on for one test."""
    yield failpoints.configure
    failpoints.configure(None)


def values(log: Log, topic: str = "a", isolation: str = "read_committed") -> list[bytes]:
    return log.read(topic, columns=["value"], isolation=isolation)["value"].to_pylist()


def test_a_commit_makes_all_records_of_all_topics_visible_at_once(log):
    with log.producer(transactional_id="t") as producer:
        producer.begin_transaction()
        producer.send("a", b"1")
        for number in range(9):
            producer.send("b", b"%d" % number, key=b"%d" % number)
        producer.flush()
        assert values(log) == values(log, "b") == []
        assert values(log, isolation="read_uncommitted") == [b"1"]
        producer.commit_transaction()
    assert values(log) == [b"1"]
    assert sorted(values(log, "b")) == [b"%d" % number for number in range(9)]


def test_an_abort_makes_none_visible_and_the_next_transaction_works(log):
    with log.producer(transactional_id="t") as producer:
        producer.begin_transaction()
        sent = producer.send("a", b"sent")
        producer.flush()
        waiting = producer.send("b", b"waiting")
        producer.abort_transaction()
        assert sent.result() == (0, 0)
        with pytest.raises(TransactionState, match="was aborted before the record was sent"):
            waiting.result()
        with producer.transaction():
            producer.send("a", b"next")
    assert values(log) == [b"next"]
    assert values(log, "b") == []
    assert values(log, isolation="read_uncommitted") == [b"sent", b"next"]


def test_a_block_commits_at_its_end_and_aborts_when_it_raises(log):
    def send_and_fail(producer):
        with producer.transaction():
            producer.send("a", b"dropped")
            producer.flush()
            raise ZeroDivisionError

    with log.producer(transactional_id="t") as producer:
        with producer.transaction():
            producer.send("a", b"kept")
        with pytest.raises(ZeroDivisionError):
            send_and_fail(producer)
    assert values(log) == [b"kept"]


def test_closing_aborts_an_open_transaction(log):
    with log.producer(transactional_id="t") as producer:
        producer.begin_transaction()
        producer.send("a", b"dropped")
        producer.flush()
    assert values(log) == []


def test_an_empty_transaction_commits(log):
    with log.producer(transactional_id="t") as producer:
        for _ in range(3):
            with producer.transaction():
                pass
    assert values(log) == []


def test_a_committed_reader_waits_at_an_open_transaction_and_loses_no_order(log):
    reader = log.consumer("a")
    impatient = log.consumer("a", isolation="read_uncommitted")
    with log.producer(transactional_id="t") as transactional, log.producer() as plain:
        plain.send_table("a", pa.table({"value": [b"before"]}))
        transactional.begin_transaction()
        transactional.send_table("a", pa.table({"value": [b"inside"]}))
        plain.send_table("a", pa.table({"value": [b"after"]}))
        assert reader.poll(timeout="0s")["value"].to_pylist() == [b"before"]
        assert reader.poll(timeout="0s") is None
        assert impatient.poll(timeout="0s")["value"].to_pylist() == [b"before", b"inside", b"after"]
        transactional.commit_transaction()
        assert reader.poll(timeout="0s")["value"].to_pylist() == [b"inside", b"after"]


def test_offsets_of_an_aborted_transaction_are_skipped_not_reused(log):
    with log.producer(transactional_id="t") as producer:
        producer.begin_transaction()
        producer.send_table("a", pa.table({"value": [b"x"] * 5}))
        producer.abort_transaction()
        with producer.transaction():
            (placed,) = producer.send_table("a", pa.table({"value": [b"y"]}))
    assert placed.base == 5
    assert log.read("a")["_offset"].to_pylist() == [5]


def test_several_writers_transactions_interleave(log):
    with log.producer(transactional_id="one") as one, log.producer(transactional_id="two") as two:
        one.begin_transaction()
        two.begin_transaction()
        for number in range(4):
            one.send_table("a", pa.table({"value": [b"one %d" % number]}))
            two.send_table("a", pa.table({"value": [b"two %d" % number]}))
        two.commit_transaction()
        assert values(log) == []
        one.abort_transaction()
    assert values(log) == [b"two %d" % number for number in range(4)]


def test_decisions_outlive_the_process(log):
    with log.producer(transactional_id="t") as producer:
        for number in range(6):
            producer.begin_transaction()
            producer.send("a", b"%d" % number)
            producer.commit_transaction() if number % 2 else producer.abort_transaction()
    assert values(Log(log.path)) == [b"1", b"3", b"5"]


@pytest.mark.parametrize("method", ["commit_transaction", "abort_transaction"])
def test_an_order_without_meaning_is_refused(log, method):
    with log.producer(transactional_id="t") as producer:
        with pytest.raises(TransactionState, match="no transaction is open"):
            getattr(producer, method)()
        producer.begin_transaction()
        with pytest.raises(TransactionState, match="open already"):
            producer.begin_transaction()
    with log.producer() as plain, pytest.raises(TransactionState, match="no transactional id"):
        plain.begin_transaction()


def test_a_transactional_producer_sends_only_inside_a_transaction(log):
    with log.producer(transactional_id="t") as producer:
        for call in (lambda: producer.send("a", b"x"), lambda: producer.send_table("a", pa.table({"value": [b"x"]}))):
            with pytest.raises(TransactionState, match="no transaction is open"):
                call()
        with producer.transaction():
            producer.send("a", b"inside")
        with pytest.raises(TransactionState):
            producer.send("a", b"outside")
    assert values(log, isolation="read_uncommitted") == [b"inside"]


# Failures


def test_a_bad_record_aborts_the_whole_transaction(log):
    log.create_topic("numbers", schema="x int")
    with log.producer(transactional_id="t", linger="1 hour") as producer:
        producer.begin_transaction()
        producer.send("a", b"x")
        producer.send("numbers", {"x": "no number"})
        with pytest.raises(SchemaError):
            producer.commit_transaction()
        with producer.transaction():
            producer.send("a", b"good")
    assert values(log) == [b"good"]


@pytest.mark.parametrize("sync", [1, 2])
def test_a_commit_that_the_disk_refuses_is_an_abort(log, faults, sync):
    """The first sync is that of the records, the second that of the decision."""
    with log.producer(transactional_id="t", linger="1 hour") as producer:
        with producer.transaction():
            producer.send("a", b"before")
        producer.begin_transaction()
        producer.send("a", b"x")
        faults(f"disk.sync.before=error(EIO)@{sync}")
        with pytest.raises(DiskFailed):
            producer.commit_transaction()
        faults(None)
        assert values(log) == [b"before"]
        with producer.transaction():
            producer.send("a", b"after")
    assert values(log) == values(Log(log.path)) == [b"before", b"after"]


def test_a_commit_that_failed_and_left_its_transaction_open_is_never_seen(log, faults, clock):
    producer = log.producer(transactional_id="t", linger="1 hour")
    producer.begin_transaction()
    producer.send("a", b"x")
    faults("disk.sync.before=error(EIO)")
    with pytest.raises(DiskFailed):
        producer.commit_transaction()
    faults(None)
    assert values(log) == []
    clock.advance(timedelta(minutes=2))
    assert values(log) == []
    producer.close()


# Fencing and time-out


def test_a_second_producer_of_the_same_name_fences_the_first(log):
    zombie = log.producer(transactional_id="t", linger="0s")
    zombie.begin_transaction()
    zombie.send("a", b"zombie, before").result()
    with log.producer(transactional_id="t") as successor:
        assert values(log) == []
        with successor.transaction():
            successor.send("a", b"successor")
        with pytest.raises(Fenced, match="was replaced by generation"):
            zombie.send("a", b"zombie, after").result()
        with pytest.raises(Fenced, match="was replaced by generation"):
            zombie.commit_transaction()
        with pytest.raises(Fenced):
            zombie.begin_transaction()
        with successor.transaction():
            successor.send("a", b"successor again")
    zombie.close()
    assert values(log) == [b"successor", b"successor again"]


def test_a_fenced_writer_that_the_partition_does_not_know_yet_has_no_effect(log):
    """The successor has not written to this partition, so only the decisions tell that the zombie is one."""
    zombie = log.producer(transactional_id="t", linger="0s")
    zombie.begin_transaction()
    with log.producer(transactional_id="t"):
        zombie.send("a", b"zombie")
        with pytest.raises(Fenced):
            zombie.commit_transaction()
    assert values(log) == []
    zombie.close()


def test_producers_and_epoch_writers_of_one_name_do_not_fence_each_other(log):
    table = pa.table({"value": [b"epoch"]})
    log.append_epoch("a", table, writer="job", epoch=1)
    with log.producer(transactional_id="job") as producer, producer.transaction():
        producer.send("a", b"transaction")
    log.append_epoch("a", table, writer="job", epoch=2)
    assert values(log) == [b"epoch", b"transaction", b"epoch"]


def test_an_abandoned_transaction_times_out_and_holds_readers_no_longer(tmp_path):
    clock = ManualClock()
    log = Log(tmp_path, clock=clock, transaction_timeout=timedelta(seconds=30))
    log.create_topic("a")
    abandoned = log.producer(transactional_id="t", linger="0s")
    abandoned.begin_transaction()
    abandoned.send("a", b"abandoned").result()
    with log.producer() as plain:
        plain.send("a", b"plain")
    reader = log.consumer("a")
    assert reader.poll(timeout="0s") is None
    clock.advance(timedelta(seconds=30))
    assert reader.poll(timeout="0s") is None
    clock.advance(timedelta(microseconds=1))
    assert reader.poll(timeout="0s")["value"].to_pylist() == [b"plain"]
    with pytest.raises(Fenced):
        abandoned.commit_transaction()
    assert values(log) == [b"plain"]
    abandoned.close()


def test_readers_agree_on_a_time_out(tmp_path):
    """One reader's abort counts for all: a commit that comes later is refused, whichever process decided."""
    clock = ManualClock()
    log, other = (Log(tmp_path, clock=clock, transaction_timeout=timedelta(seconds=1)) for _ in range(2))
    log.create_topic("a")
    producer = log.producer(transactional_id="t", linger="0s")
    producer.begin_transaction()
    producer.send("a", b"x").result()
    clock.advance(timedelta(seconds=2))
    assert values(other) == []
    with pytest.raises(LogError):
        producer.commit_transaction()
    assert values(log) == values(other) == []
    producer.close()


# Threads


def test_lingering_records_never_slip_out_of_a_transaction_that_is_aborted(tmp_path):
    log = Log(tmp_path)
    log.create_topic("a")
    with log.producer(transactional_id="t", linger="1ms", acks="1") as producer:
        for number in range(150):
            producer.begin_transaction()
            for _ in range(number % 7):
                producer.send("a", b"aborted")
            producer.abort_transaction()
    assert values(log) == []


def test_other_threads_records_are_in_a_transaction_or_refused(tmp_path):
    log = Log(tmp_path)
    log.create_topic("a")
    stop = threading.Event()
    deliveries = []

    def send(producer):
        number = 0
        while not stop.is_set():
            with suppress(TransactionState):
                deliveries.append(producer.send("a", b"%d" % number))
                number += 1

    producer = log.producer(transactional_id="t", linger="1ms", acks="1")
    thread = threading.Thread(target=send, args=(producer,))
    thread.start()
    for _ in range(20):
        producer.begin_transaction()
        # A record that came between two transactions fails, and with it the next transaction.
        with suppress(TransactionState):
            producer.commit_transaction()
    stop.set()
    thread.join()
    with suppress(TransactionState):
        producer.close()
    placed = {delivery.result().offset for delivery in deliveries if delivery.error() is None}
    committed = log.read("a").to_pylist()
    assert all(delivery.done() for delivery in deliveries)
    assert {record["_offset"] for record in committed} <= placed
    assert [int(record["value"]) for record in committed] == sorted({int(record["value"]) for record in committed})


def test_a_reader_from_the_end_gets_a_transaction_that_was_open_when_it_began(tmp_path):
    log = Log(tmp_path)
    log.create_topic("t", schema="n int")
    with log.producer(transactional_id="t") as producer:
        producer.begin_transaction()
        producer.send("t", {"n": 1})
        producer.flush()
        log.append_epoch("t", pa.table({"n": pa.array([2], pa.int32())}), writer="w", epoch=1)
        reader = log.consumer("t", start="end")
        assert reader.poll(timeout="0s") is None
        producer.commit_transaction()
    found = reader.poll(timeout=timedelta(seconds=PATIENCE))
    assert found is not None
    assert found.column("n").to_pylist() == [1, 2]


def test_what_is_stable_is_found_in_the_last_segments_and_ends_before_the_first_open_transaction(tmp_path):
    clock = ManualClock()
    log = Log(tmp_path, clock=clock)
    log.create_topic("t", schema="n int, text string", config={"segment.bytes": 1024})
    with log.producer(transactional_id="done") as producer:
        for number in range(20):
            producer.begin_transaction()
            producer.send("t", {"n": number, "text": "x" * 300})
            producer.flush()
            producer.abort_transaction() if number % 3 else producer.commit_transaction()
            clock.advance(timedelta(seconds=10))
    with suppress(Fenced), log.producer(transactional_id="open") as producer:
        producer.begin_transaction()
        producer.send("t", {"n": 20, "text": ""})
        producer.flush()
        for epoch in range(3):
            log.append_epoch("t", pa.table({"n": pa.array([21], pa.int32()), "text": ["y" * 300]}), writer="w", epoch=epoch)
        place = log.partition(log.topic("t"), 0)
        assert Log(tmp_path, clock=clock).transactions.stable_end(place) == 20
        assert log.transactions.stable_end(place) == 20
        # Left open for too long it is aborted, and holds nobody up.
        clock.advance(timedelta(seconds=61))
        assert log.transactions.stable_end(place) == 24
