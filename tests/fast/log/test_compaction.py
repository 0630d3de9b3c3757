"""Compaction: the latest record of each key stays at its offset; readers and writers notice nothing else."""

from datetime import timedelta

import pyarrow as pa
import pytest

from headrace.core.clock import to_datetime
from headrace.log import Log
from headrace.log.errors import CorruptLog
from headrace.log.files.cursor import Cursor, ReadLimits
from headrace.log.files.segment import MERGING
from headrace.log.upkeep.compaction import Compaction
from headrace.log.upkeep.maintenance import maintenance_lock

COMPACT = {"cleanup.policy": "compact"}


def send(log, *records, topic="a", roll=True, **settings):
    """Records of (key, value), in a segment of their own."""
    with log.producer(**settings) as producer:
        for key, value in records:
            producer.send(topic, value, key=key)
    if roll:
        close_segment(log, topic)


def close_segment(log, topic="a"):
    log.partition(log.topic(topic), 0).roll()
    log.maintenance.wait()


def compact(log, topic="a"):
    close_segment(log, topic)
    [report] = log.maintain(topic, force=True)
    assert report.error is None, report.error
    return report.compacted


def held(log, topic="a", **options):
    table = log.read(topic, columns=["_offset", "_key", "value"], **options)
    return list(zip(*(table[name].to_pylist() for name in ("_offset", "_key", "value")), strict=True))


def segments(log, topic="a"):
    return sorted(int(path.stem) for path in (log.path / "topics" / topic / "0").glob("*.segment"))


@pytest.fixture
def topic(log):
    return log.create_topic("a", config=COMPACT)


def test_the_latest_record_of_each_key_stays_at_its_offset(log, topic):
    send(log, (b"a", b"1"), (b"b", b"2"), (b"a", b"3"), roll=False)
    send(log, (b"c", b"4"), (b"b", b"5"))
    compact(log)
    assert held(log) == [(2, b"a", b"3"), (3, b"c", b"4"), (4, b"b", b"5")]


def test_the_report_says_what_went(log, topic):
    send(log, (b"a", b"1"), (b"a", b"2"), roll=False)
    before = log.describe("a")["partitions"][0]["bytes"]
    partition = log.partition(log.topic("a"), 0)
    partition.on_roll = None
    compacted = compact(log)
    assert (compacted.records_removed, compacted.segments_before, compacted.segments_after) == (1, 1, 1)
    assert compacted.bytes_before == before


def test_the_active_segment_is_not_touched(log, topic):
    send(log, (b"a", b"1"))
    send(log, (b"a", b"2"), (b"a", b"3"), roll=False)
    log.maintain("a", force=True)
    assert held(log) == [(0, b"a", b"1"), (1, b"a", b"2"), (2, b"a", b"3")]


def test_what_is_compacted_is_compacted_again(log, topic):
    for number in range(5):
        send(log, (b"a", b"%d" % number), (b"b%d" % number, b"x"))
        compact(log)
    assert held(log) == [(1, b"b0", b"x"), (3, b"b1", b"x"), (5, b"b2", b"x"), (7, b"b3", b"x"), (8, b"a", b"4"), (9, b"b4", b"x")]


def test_a_second_compaction_with_nothing_new_rewrites_nothing(log, topic):
    send(log, (b"a", b"1"), (b"a", b"2"))
    compact(log)
    assert compact(log).segments_before == 0


def test_neighbouring_small_segments_become_one(log, clock):
    log.create_topic("a", config=COMPACT | {"segment.bytes": 8192, "min.compaction.lag.ms": 3_600_000})
    for number in range(40):
        send(log, (b"k%d" % number, bytes(300)))
    clock.advance(timedelta(hours=2))
    assert len(segments(log)) == 41
    compacted = compact(log)
    assert compacted.segments_before == 40
    assert len(segments(log)) == compacted.segments_after + 1 < 10
    assert [offset for offset, _, _ in held(log)] == list(range(40))
    sizes = [path.stat().st_size for path in (log.path / "topics/a/0").glob("*.segment")]
    assert max(sizes) < 2 * 8192


def test_headers_times_and_columns_survive(log, clock):
    log.create_topic("a", schema="id string, n int, at timestamp", key="id", time="at", config=COMPACT)
    log.create_topic("b", config=COMPACT | {"compression.type": "zstd"})
    start = clock.now()
    with log.producer() as producer:
        for number in range(4):
            producer.send(
                "a",
                {"id": f"i{number % 3}", "n": number, "at": None if number == 2 else to_datetime(start + number)},
                headers={"h": b"%d" % number},
            )
            producer.send("b", b"v%d" % number, key=b"k%d" % (number % 3), headers={"h": b"x"} if number == 3 else None)
            producer.flush()
            clock.advance(timedelta(seconds=1))
    names = {
        "a": ["id", "n", "at", "_key", "_headers", "_offset", "_time"],
        "b": ["value", "_key", "_headers", "_offset", "_time", "_tombstone"],
    }
    before = {topic: log.read(topic, columns=columns).to_pylist()[1:] for topic, columns in names.items()}
    for topic, columns in names.items():
        compact(log, topic)
        assert log.read(topic, columns=columns).to_pylist() == before[topic]
        assert log.max_event_time(topic, 0, 0, 4) == max(row["_time"] for row in before[topic] if row["_time"]).timestamp() * 1_000_000


def test_segments_from_before_a_column_was_added_merge_with_later_ones(log):
    log.create_topic("a", schema="id string", key="id", config=COMPACT)
    with log.producer() as producer:
        producer.send("a", {"id": "x"})
        producer.flush()
        log.alter_topic("a", schema="id string, n int")
        producer.send("a", {"id": "y", "n": 1})
    compact(log)
    assert segments(log) == [0, 2]
    assert log.read("a", columns=["id", "n", "_offset"]).to_pylist() == [
        {"id": "x", "n": None, "_offset": 0},
        {"id": "y", "n": 1, "_offset": 1},
    ]


def test_a_key_of_several_columns_counts_as_a_whole(log):
    log.create_topic("a", schema="shop string, item int, price int", key=["shop", "item"], config=COMPACT)
    with log.producer() as producer:
        for price, (shop, item) in enumerate([("x", 1), ("y", 1), ("x", 1), ("x", 2), ("y", 1)]):
            producer.send("a", {"shop": shop, "item": item, "price": price})
    compact(log)
    assert log.read("a")["price"].to_pylist() == [2, 3, 4]


def test_records_without_a_key_are_kept(log):
    log.create_topic("a")
    send(log, (None, b"1"), (b"k", b"2"), (None, b"3"), (b"k", b"4"), roll=False)
    log.alter_topic("a", config=COMPACT)
    compact(log)
    assert [value for _, _, value in held(log)] == [b"1", b"3", b"4"]


# Tombstones


def test_a_tombstone_hides_its_key_and_stays_for_delete_retention_ms(log, clock):
    log.create_topic("a", config=COMPACT | {"delete.retention.ms": 3_600_000})
    send(log, (b"a", b"1"), (b"b", b"1"), (b"a", None), roll=False)
    clock.advance(timedelta(hours=5))
    compact(log)  # its time begins when a compaction first meets it
    clock.advance(timedelta(minutes=59))
    compact(log)
    assert held(log) == [(1, b"b", b"1"), (2, b"a", None)]
    clock.advance(timedelta(minutes=2))
    compact(log)
    assert held(log) == [(1, b"b", b"1")]


def test_a_compaction_in_between_does_not_prolong_a_tombstone(log, clock):
    log.create_topic("a", config=COMPACT | {"delete.retention.ms": 3_600_000})
    send(log, (b"a", b"1"), (b"a", None))
    for number in range(6):
        assert any(key == b"a" for _, key, _ in held(log))
        send(log, (b"b%d" % number, None if number % 2 else b"x"))
        compact(log)
        clock.advance(timedelta(minutes=13))
    assert not any(key == b"a" for _, key, _ in held(log))
    assert any(key == b"b3" for _, key, _ in held(log))


def test_a_tombstone_that_is_overwritten_goes_at_once(log, topic):
    send(log, (b"a", b"1"), (b"a", None), (b"a", b"2"))
    compact(log)
    assert held(log) == [(2, b"a", b"2")]


# What is left alone


def test_records_younger_than_the_lag_stay_as_they_are(log, clock):
    log.create_topic("a", config=COMPACT | {"min.compaction.lag.ms": 60_000})
    send(log, (b"a", b"1"), (b"a", b"2"))
    clock.advance(timedelta(seconds=61))
    send(log, (b"a", b"3"), (b"a", b"4"))
    compact(log)
    assert [value for _, _, value in held(log)] == [b"2", b"3", b"4"]
    clock.advance(timedelta(seconds=61))
    compact(log)
    assert [value for _, _, value in held(log)] == [b"4"]


def test_nothing_at_or_behind_an_open_transaction_is_touched(log, topic):
    send(log, (b"a", b"1"), (b"a", b"2"))
    with log.producer(transactional_id="t") as writer:
        writer.begin_transaction()
        writer.send("a", b"3", key=b"a")
        writer.flush()
        close_segment(log)
        send(log, (b"b", b"4"), (b"b", b"5"))
        compact(log)
        assert [value for _, _, value in held(log, isolation="read_uncommitted")] == [b"2", b"3", b"4", b"5"]
        writer.commit_transaction()
        compact(log)
        assert [value for _, _, value in held(log)] == [b"3", b"5"]


def test_what_an_aborted_transaction_left_goes_and_does_not_count_as_the_latest(log, topic):
    send(log, (b"a", b"1"), (b"b", b"1"))
    with log.producer(transactional_id="t") as writer:
        writer.begin_transaction()
        writer.send("a", b"2", key=b"a")
        writer.send("a", None, key=b"b")
        writer.flush()
        writer.abort_transaction()
    compact(log)
    assert held(log, isolation="read_uncommitted") == [(0, b"a", b"1"), (1, b"b", b"1")]


def test_committed_records_stay_committed_when_the_decisions_are_compacted_too(log, topic, tmp_path, clock):
    for number in range(4):
        with log.producer(transactional_id="t") as writer, writer.transaction():
            writer.send("a", b"%d" % number, key=b"k%d" % number)
    compact(log)
    compact(log, "__transactions")
    assert [value for _, _, value in held(Log(tmp_path / "log", clock=clock))] == [b"0", b"1", b"2", b"3"]


# Writers


def test_a_retried_append_is_still_found_after_its_records_were_compacted(log, topic, tmp_path, clock):
    rows = pa.table({"value": [b"1"], "_key": [b"a"]})
    [first] = log.append_epoch("a", rows, writer="job", epoch=7)
    send(log, (b"a", b"2"))
    compact(log)
    other = Log(tmp_path / "log", clock=clock)
    [again] = other.append_epoch("a", rows, writer="job", epoch=7)
    assert (again.repeated, again.base) == (True, first.base)
    assert other.last_epochs("a", "job") == {0: 7}
    assert held(other) == [(1, b"a", b"2")]


# While others read and write


def test_a_reader_goes_on_at_the_next_record_wherever_it_was(log, topic):
    for number in range(6):
        send(log, *[(b"k%d" % (number * row % 5), b"%d" % row) for row in range(4)])
    everything = held(log)
    consumers = [log.consumer("a", start=offset) for offset in range(24)]
    for place, consumer in enumerate(consumers):
        if place % 2:
            consumer.poll(max_rows=1)
    positions = [consumer.position("a", 0) for consumer in consumers]
    compact(log)
    kept = held(log)
    assert 0 < len(kept) < len(everything)
    for consumer, position in zip(consumers, positions, strict=True):
        seen = []
        while (table := consumer.poll(timeout="0s", columns=["_offset", "_key", "value"])) is not None:
            seen += list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
        assert [row for row in seen if row in kept] == [row for row in kept if row[0] >= position]
        assert seen == [row for row in everything if row in seen]


def test_a_reader_that_finished_a_file_does_not_skip_what_was_merged_into_it(log, topic):
    for number in range(3):
        send(log, (b"k%d" % number, b"x"))
    partition = log.partition(topic, 0)
    cursor = Cursor(partition, 0)
    assert cursor.read(ReadLimits(rows=1))[0].num_rows == 1  # at the end of the first of three files
    compact(log)
    assert segments(log) == [0, 3]
    offsets = [offset for batch in cursor.read() for offset in batch.column("_offset").to_pylist()]
    assert offsets == [1, 2]


def test_leftovers_of_a_merge_that_a_crash_interrupted_do_not_count(log, topic, tmp_path, clock):
    for number in range(4):
        send(log, (b"k%d" % (number % 2), b"%d" % number))
    directory = log.path / "topics/a/0"
    stale = {path.name: path.read_bytes() for path in directory.iterdir() if path.name.startswith((f"{1:020d}", f"{3:020d}"))}
    compact(log)
    for name, data in stale.items():
        (directory / name).write_bytes(data)
    (directory / MERGING).touch()
    # The file for offset 1 ends at 2, that for 2 is gone: a reader must find what comes next in the merged one.
    other = Log(tmp_path / "log", clock=clock)
    assert held(other) == [(2, b"k0", b"2"), (3, b"k1", b"3")]
    assert [row[0] for row in held(other, start=1)] == [2, 3]
    other.maintain("a")
    assert segments(other) == [0, 4]
    assert not (directory / MERGING).exists()


def test_records_sent_during_a_compaction_are_there_after_it(log, topic):
    send(log, (b"a", b"1"), (b"a", b"2"))
    partition = log.partition(topic, 0)
    with maintenance_lock(partition):
        compaction = Compaction(partition, log.transactions)
        send(log, (b"a", b"3"), (b"b", b"4"), roll=False)
        partition.on_roll = None
        partition.roll()
        compaction.run()
    assert held(log) == [(1, b"a", b"2"), (2, b"a", b"3"), (3, b"b", b"4")]


def test_with_little_memory_for_keys_the_result_is_the_same(log, topic):
    partition = log.partition(topic, 0)
    partition.on_roll = None
    with log.producer() as producer:
        for number in range(2_000):
            producer.send("a", b"%d" % number, key=b"k%d" % (number * 7 % 500))
    partition.roll()
    latest = {key: row for row in held(log) for key in [row[1]]}
    with maintenance_lock(partition):
        assert Compaction(partition, None, key_memory=4096).run().records_removed == 1_500
    assert held(log) == sorted(latest.values())


def test_damaged_records_stop_a_compaction_and_nothing_is_changed(log, topic):
    partition = log.partition(topic, 0)
    partition.on_roll = None
    send(log, (b"a", b"1"), (b"a", b"2"))
    path = log.path / "topics/a/0" / f"{0:020d}.segment"
    data = bytearray(path.read_bytes())
    data[-80] ^= 1
    path.write_bytes(data)
    [report] = log.maintain("a", force=True)
    assert isinstance(report.error, CorruptLog)
    assert path.read_bytes() == data
    assert not list(path.parent.glob(".aside*"))
