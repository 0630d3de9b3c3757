"""Reading: with limits, from any place, many readers at once, zero-copy, and in bounded memory."""

import re
import threading
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.errors import LogError, SchemaError, SettingsError
from headrace.log import Log
from headrace.log.errors import OffsetOutOfRange
from tests.support.examples import examples
from tests.support.processes import PATIENCE

FIRST = datetime(2025, 1, 1, tzinfo=UTC)


def fill(log: Log, topic: str, batches: list[int], partition: int | None = None) -> None:
    """Batches of numbered records, one second of event time apart."""
    end = sum(part["end"] for part in log.describe(topic)["partitions"])
    for count in batches:
        numbers = list(range(end, end + count))
        times = pa.array([FIRST + timedelta(seconds=number) for number in numbers], pa.timestamp("us", "UTC"))
        log.append_epoch(topic, pa.table({"number": numbers, "at": times}), writer="fill", epoch=end, partition=partition)
        end += count


@pytest.fixture
def log(tmp_path, clock):
    log = Log(tmp_path / "log", clock=clock)
    log.create_topic("t", schema="number bigint, at timestamp", time="at")
    return log


def numbers(table: pa.Table | None) -> list[int]:
    return [] if table is None else table["number"].to_pylist()


# Limits


@settings(max_examples=examples(15))
@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 40))
def test_no_poll_returns_more_than_its_rows_and_nothing_is_skipped(tmp_path_factory, batches, limit):
    log = Log(tmp_path_factory.mktemp("log"))
    log.create_topic("t", schema="number bigint, at timestamp", time="at")
    fill(log, "t", batches)
    consumer, seen = log.consumer("t"), []
    while (table := consumer.poll(max_rows=limit, timeout="0s")) is not None:
        assert 0 < table.num_rows <= limit
        assert table["_offset"].to_pylist() == numbers(table)
        seen += numbers(table)
        assert consumer.position("t", 0) == len(seen)
    assert seen == list(range(sum(batches)))


def test_a_poll_stops_after_the_batch_that_reaches_its_bytes(log):
    fill(log, "t", [100] * 10)
    consumer = log.consumer("t")
    assert consumer.poll(max_bytes=1, timeout="0s").num_rows == 100
    assert consumer.poll(max_bytes=3_000, timeout="0s").num_rows == 200


def test_a_poll_without_records_waits_for_its_time_out_only(log):
    assert log.consumer("t").poll(timeout="1ms") is None


def test_a_waiting_poll_gets_what_another_thread_appends(tmp_path):
    log = Log(tmp_path)
    log.create_topic("t", schema="number bigint, at timestamp", time="at")
    consumer = log.consumer("t")
    thread = threading.Thread(target=fill, args=(Log(tmp_path), "t", [3]))
    thread.start()
    assert numbers(consumer.poll(timeout=timedelta(seconds=PATIENCE))) == [0, 1, 2]
    thread.join()


# Places


@pytest.mark.parametrize(
    ("place", "first"),
    [
        ("beginning", 0),
        ("end", 50),
        (0, 0),
        (17, 17),
        (50, 50),
        (FIRST - timedelta(days=1), 0),
        (FIRST + timedelta(seconds=17), 17),
        (FIRST + timedelta(seconds=16.5), 17),
        (FIRST + timedelta(seconds=49), 49),
        (FIRST + timedelta(days=1), 50),
        ((FIRST + timedelta(seconds=5)).replace(tzinfo=None), 5),
    ],
)
def test_a_reader_begins_at_any_place(log, place, first):
    fill(log, "t", [20, 20, 10])
    expected = list(range(first, 50))
    assert numbers(log.consumer("t", start=place).poll(timeout="0s")) == expected
    assert numbers(log.read("t", start=place)) == expected
    consumer = log.consumer("t")
    consumer.poll(max_rows=33)
    consumer.seek(place)
    assert consumer.position("t", 0) == first
    assert numbers(consumer.poll(timeout="0s")) == expected


def test_seeking_may_be_for_one_partition(log):
    log.create_topic("p", partitions=3, schema="number bigint, at timestamp")
    for partition in range(3):
        fill(log, "p", [10], partition)
    consumer = log.consumer("p")
    consumer.poll()
    consumer.seek(4, topic="p", partition=1)
    assert consumer.positions() == {("p", 0): 10, ("p", 1): 4, ("p", 2): 10}
    assert consumer.poll()["_partition"].unique().to_pylist() == [1]
    with pytest.raises(LogError, match="reads no partition 7 of topic 'p'"):
        consumer.seek(0, topic="p", partition=7)


def test_a_seek_that_one_partition_cannot_do_moves_none(log):
    log.create_topic("p", partitions=2, schema="number bigint, at timestamp")
    fill(log, "p", [10], 0)
    fill(log, "p", [3], 1)
    consumer = log.consumer("p")
    with pytest.raises(OffsetOutOfRange, match="partition 1 of topic 'p' has no offset 7"):
        consumer.seek(7)
    assert set(consumer.positions().values()) == {0}


def test_a_reader_can_go_back_as_often_as_it_likes(log):
    fill(log, "t", [10, 10])
    consumer = log.consumer("t")
    for _ in range(3):
        consumer.seek("beginning")
        assert numbers(consumer.poll(timeout="0s")) == list(range(20))


# Many readers


def test_readers_are_independent_and_a_slow_one_holds_nobody_up(log):
    slow, quick = log.consumer("t"), log.consumer("t")
    for _ in range(20):
        fill(log, "t", [50])
        assert quick.poll(timeout="0s").num_rows == 50
    assert slow.poll(max_rows=10, timeout="0s").num_rows == 10
    assert slow.lag() == {("t", 0): 990}
    assert quick.lag() == {("t", 0): 0}


def test_a_busy_partition_does_not_starve_the_others(log):
    log.create_topic("p", partitions=4, schema="number bigint, at timestamp")
    for partition, count in enumerate([10_000, 5, 5, 5]):
        fill(log, "p", [count], partition)
    consumer = log.consumer("p")
    seen = set()
    for _ in range(4):
        seen |= set(consumer.poll(max_rows=5, timeout="0s")["_partition"].to_pylist())
    assert seen == {0, 1, 2, 3}


def test_partitions_that_a_topic_gets_later_are_read_from_their_beginning(tmp_path):
    log, other = Log(tmp_path), Log(tmp_path)
    log.create_topic("p", partitions=1, schema="number bigint, at timestamp")
    consumer = log.consumer("p", start="end")
    assert consumer.poll(timeout="0s") is None
    other.alter_topic("p", partitions=3)
    fill(other, "p", [7], 2)
    assert numbers(consumer.poll(timeout="0s")) == list(range(7))
    assert consumer.assignment == [("p", 0), ("p", 1), ("p", 2)]


def test_a_reader_chooses_its_partitions(log):
    log.create_topic("p", partitions=3, schema="number bigint, at timestamp")
    for partition in range(3):
        fill(log, "p", [10], partition)
    consumer = log.consumer("t")
    consumer.assign([("p", 1)], 5)
    assert consumer.assignment == [("p", 1), ("t", 0)]
    assert consumer.poll(columns=["_partition"])["_partition"].to_pylist() == [1] * 5
    consumer.drop([("p", 1)])
    assert consumer.assignment == [("t", 0)]
    with pytest.raises(LogError, match="does not read partition 1"):
        consumer.position("p", 1)
    with pytest.raises(LogError, match="has no partition 3"):
        consumer.assign([("p", 3)])


def test_several_topics_are_read_together_with_empty_values_for_what_one_lacks(log):
    log.create_topic("u", schema="number bigint, name string")
    fill(log, "t", [1])
    with log.producer() as producer:
        producer.send("u", {"number": 5, "name": "five"})
    rows = log.consumer(["t", "u"]).poll().to_pylist()
    assert sorted((row["number"], row["name"]) for row in rows) == [(0, None), (5, "five")]


def test_a_closed_reader_refuses(log):
    with log.consumer("t") as consumer:
        pass
    with pytest.raises(LogError, match="this consumer is closed"):
        consumer.poll()


def test_an_unknown_isolation_is_refused(log):
    with pytest.raises(SettingsError, match="isolation='dirty' is not known"):
        log.consumer("t", isolation="dirty")


# Columns


def test_only_the_named_columns_are_returned_in_their_order(log):
    fill(log, "t", [3])
    table = log.consumer("t").poll(columns=["_offset", "number"])
    assert table.column_names == ["_offset", "number"]
    assert log.read("t", columns=["at"]).column_names == ["at"]
    assert log.read("t", columns=[]).num_columns == 0


def test_without_names_a_reader_gets_the_topics_columns_and_place_and_time(log):
    fill(log, "t", [1])
    assert log.read("t").to_pylist() == [{"number": 0, "at": FIRST, "_partition": 0, "_offset": 0, "_time": FIRST}]


def test_an_empty_topic_has_its_columns_too(log):
    assert log.read("t").schema == pa.schema(
        [("number", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("_partition", pa.int32()), ("_offset", pa.int64()),
         ("_time", pa.timestamp("us", "UTC"))])  # fmt: skip


def test_an_unknown_column_is_refused_and_the_reader_stays_where_it_is(log):
    fill(log, "t", [3])
    consumer = log.consumer("t")
    with pytest.raises(SchemaError, match="topic 't' has no column 'nothing'"):
        consumer.poll(columns=["nothing"])
    assert numbers(consumer.poll()) == [0, 1, 2]


# Memory


def mapped(path: Path) -> list[tuple[int, int]]:
    """Where this process has a file in its memory."""
    ranges = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        found = re.match(r"([0-9a-f]+)-([0-9a-f]+) .* (/.*)$", line)
        if found and found[3] == str(path):
            ranges.append((int(found[1], 16), int(found[2], 16)))
    return ranges


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what is mapped")
def test_what_is_read_lies_in_the_mapped_file_without_a_copy(log):
    fill(log, "t", [1000])
    before = pa.total_allocated_bytes()
    table = log.read("t", columns=["number", "at"])
    (segment,) = (log.path / "topics" / "t" / "0").glob("*.segment")
    ranges = mapped(segment)
    for column in table.columns:
        for chunk in column.chunks:
            _, data = chunk.buffers()
            assert any(first <= data.address and data.address + data.size <= last for first, last in ranges)
    assert pa.total_allocated_bytes() - before < 1000


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_reading_takes_bounded_memory(tmp_path, compression):
    """Held at once: the bytes asked for and one batch more, which is a megabyte before it is compressed."""
    log = Log(tmp_path)
    log.create_topic("big", config={"compression.type": compression})
    with log.producer(acks="1") as producer:
        for number in range(20):
            producer.send_table("big", pa.table({"value": [b"%0100d" % place for place in range(number * 20_000, (number + 1) * 20_000)]}))
    limit = 2_000_000
    consumer, rows, arrow_peak = log.consumer("big"), 0, 0
    consumer.poll(max_rows=1, columns=["value"])
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    while (table := consumer.poll(max_rows=10**9, max_bytes=limit, timeout="0s", columns=["value"])) is not None:
        rows += table.num_rows
        arrow_peak = max(arrow_peak, pa.total_allocated_bytes() - before)
    _, python_peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == 20 * 20_000 - 1
    assert python_peak < 1_000_000
    # A compressed batch of a few bytes may hold a megabyte, so the limit counts what it becomes.
    assert arrow_peak < (100_000 if compression == "none" else 2 * (limit + 2_000_000))
