"""A snapshot and the tail behind it: every record once."""

from datetime import timedelta

import pytest

from headrace.core.errors import SchemaError, SettingsError
from headrace.log import Log

COMPACT = {"cleanup.policy": "compact"}


def send(log, *records, topic="a"):
    with log.producer() as producer:
        for key, value in records:
            producer.send(topic, value, key=key)


def folded(table):
    return dict(zip(table["_key"].to_pylist(), table["value"].to_pylist(), strict=True))


def test_the_latest_record_of_each_key_and_no_deleted_one(log):
    log.create_topic("a", partitions=3)
    send(log, *[(b"k%d" % (number % 10), b"%d" % number) for number in range(25)], (b"k3", None))
    snapshot = log.snapshot("a")
    expected = {b"k%d" % (number % 10): b"%d" % number for number in range(25)}
    del expected[b"k3"]
    assert folded(snapshot.table) == expected
    assert snapshot.table.num_rows == 9
    assert sum(snapshot.next_offsets.values()) == 26


def test_the_tail_begins_where_the_snapshot_ends(log):
    log.create_topic("a", partitions=2)
    send(log, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    snapshot = log.snapshot("a")
    send(log, (b"a", b"2"), (b"d", b"2"))
    with log.consumer("a", start=snapshot.next_offsets) as tail:
        tables = []
        while (table := tail.poll(timeout="0s")) is not None:
            tables.append(table)
    assert sorted(value for table in tables for value in table["value"].to_pylist()) == [b"2", b"2"]


def test_partitions_that_came_later_are_read_from_their_beginning(log):
    log.create_topic("a", partitions=1)
    send(log, (b"a", b"1"))
    snapshot = log.snapshot("a")
    log.alter_topic("a", partitions=4)
    send(log, *[(b"k%d" % number, b"2") for number in range(20)])
    with log.consumer("a", start=snapshot.next_offsets) as tail:
        rows = 0
        while (table := tail.poll(timeout="0s")) is not None:
            rows += table.num_rows
    assert rows == 20


def test_assign_takes_an_offset_for_each_partition(log):
    log.create_topic("a", partitions=2)
    log.create_topic("b")
    send(log, *[(None, b"%d" % number) for number in range(4)], topic="b")
    consumer = log.consumer("a")
    consumer.assign([("b", 0)], {0: 3})
    assert consumer.poll()["value"].to_pylist() == [b"3"]


def test_an_open_transaction_ends_the_snapshot_before_it(log):
    log.create_topic("a")
    send(log, (b"a", b"1"))
    with log.producer(transactional_id="t") as writer:
        writer.begin_transaction()
        writer.send("a", b"2", key=b"a")
        writer.flush()
        send(log, (b"b", b"3"))
        snapshot = log.snapshot("a")
        assert folded(snapshot.table) == {b"a": b"1"}
        assert snapshot.next_offsets == {0: 1}
        writer.commit_transaction()
    with log.consumer("a", start=snapshot.next_offsets) as tail:
        assert tail.poll()["value"].to_pylist() == [b"2", b"3"]


def test_a_snapshot_of_a_compacted_topic_is_the_same_before_and_after(log, clock):
    log.create_topic("a", config=COMPACT | {"segment.bytes": 2048, "delete.retention.ms": 1_000})
    send(log, *[(b"k%d" % (number * 7 % 20), None if number % 6 == 0 else b"%d" % number) for number in range(200)])
    log.maintenance.wait()
    before = log.snapshot("a")
    log.partition(log.topic("a"), 0).roll()
    log.maintain("a", force=True)
    clock.advance(timedelta(hours=1))
    log.maintain("a", force=True)
    after = log.snapshot("a")
    assert after.next_offsets == before.next_offsets
    assert after.table.to_pylist() == before.table.to_pylist()


def test_key_columns_and_all_other_columns_are_in_the_table(log):
    log.create_topic("a", schema="shop string, item int, price double", key=["shop", "item"])
    with log.producer() as producer:
        producer.send("a", {"shop": "x", "item": 1, "price": 2.5})
        producer.send("a", {"shop": "x", "item": 1, "price": 3.5})
        producer.send("a", {"shop": "y", "item": 1, "price": 4.5})
        producer.send("a", None, key=("y", 1))
    [row] = log.snapshot("a").table.to_pylist()
    assert (row["shop"], row["item"], row["price"], row["_offset"]) == ("x", 1, 3.5, 1)


def test_an_empty_topic_has_an_empty_snapshot(log):
    log.create_topic("a", schema="id int, v string", key="id")
    snapshot = log.snapshot("a")
    assert snapshot.table.num_rows == 0
    assert snapshot.table.column_names == ["id", "v", "_partition", "_offset", "_time"]
    assert snapshot.next_offsets == {0: 0}


def test_records_without_a_key_have_no_snapshot(log):
    log.create_topic("a")
    send(log, (b"k", b"1"), (None, b"2"))
    with pytest.raises(SchemaError, match="has records without a key"):
        log.snapshot("a")


def test_another_process_sees_the_same(log, tmp_path, clock):
    log.create_topic("a")
    send(log, (b"a", b"1"), (b"a", b"2"))
    assert folded(Log(tmp_path / "log", clock=clock).snapshot("a").table) == {b"a": b"2"}


def test_members_of_a_group_cannot_start_at_given_offsets(log):
    log.create_topic("a")
    with pytest.raises(SettingsError, match="cannot start at given offsets"):
        log.consumer("a", group="g", start={0: 0})
