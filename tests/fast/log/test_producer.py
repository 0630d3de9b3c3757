"""Sending: records are batched, each has its own outcome, and what waits is bounded."""

import math
import threading
import tracemalloc
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core import failpoints
from headrace.core.errors import HeadraceError, LogError, SchemaError, SettingsError
from headrace.log import Log
from headrace.log.errors import DiskFailed, RecordTooLarge
from headrace.log.records import weight
from tests.support.counting import CountingDisk
from tests.support.examples import examples

VIEWS = {"schema": "url string, user string, viewed_at timestamp", "key": "url", "time": "viewed_at"}


@pytest.fixture
def faults():
    """Switch failpoints on for one test."""
    yield failpoints.configure
    failpoints.configure(None)


def values(log: Log, topic: str = "a") -> list[bytes]:
    return log.read(topic, columns=["value"])["value"].to_pylist()


def batches(log: Log, topic: str = "a") -> int:
    return log.read(topic)["_offset"].num_chunks


# Batching


def test_a_delivery_says_where_its_record_is(log):
    log.create_topic("a", partitions=4)
    with log.producer() as producer:
        deliveries = [producer.send("a", b"%d" % number, key=f"k{number % 7}") for number in range(50)]
    stored = {(record["_partition"], record["_offset"]): record["value"] for record in log.read("a").to_pylist()}
    assert [stored[delivery.result()] for delivery in deliveries] == [b"%d" % number for number in range(50)]


def test_a_table_waits_for_the_records_sent_before_it(log):
    log.create_topic("a")
    with log.producer(linger="1 hour") as producer:
        producer.send("a", b"first")
        (appended,) = producer.send_table("a", pa.table({"value": [b"second", b"third"]}))
        assert (appended.base, appended.next, appended.repeated) == (1, 3, False)
    assert values(log) == [b"first", b"second", b"third"]


def test_an_empty_table_stores_nothing(log):
    log.create_topic("a")
    with log.producer() as producer:
        assert producer.send_table("a", pa.table({"value": pa.array([], pa.binary())})) == []
    assert log.describe("a")["partitions"][0]["end"] == 0


def test_a_large_table_is_stored_in_frames_of_a_megabyte_as_one_append(log):
    log.create_topic("a")
    with log.producer() as producer:
        (appended,) = producer.send_table("a", pa.table({"value": [b"x" * 1000] * 5000}))
    assert (appended.base, appended.next) == (0, 5000)
    assert batches(log) == 5


def test_key_and_time_next_to_a_table_fill_the_topics_own_columns(log):
    log.create_topic("views", **VIEWS)
    log.create_topic("raw")
    moment = datetime(2025, 1, 1, tzinfo=UTC)
    times = pa.array([moment], pa.timestamp("us", "UTC"))
    with log.producer() as producer:
        producer.send_table("views", pa.table({"user": ["u"]}), key=pa.array(["/a"]), time=times)
        producer.send_table("raw", pa.table({"value": [b"x"]}), key=pa.array([b"k"]), time=times)
        with pytest.raises(SchemaError, match="'url' is in the table and was also given as an argument"):
            producer.send_table("views", pa.table({"url": ["/a"]}), key=pa.array(["/a"]))
        with pytest.raises(SchemaError, match="2 values for '_key', but the table has 1 rows"):
            producer.send_table("raw", pa.table({"value": [b"x"]}), key=pa.array([b"k", b"k"]))
    assert log.read("views", columns=["url", "user", "_time"]).to_pylist() == [{"url": "/a", "user": "u", "_time": moment}]
    assert log.read("raw", columns=["value", "_key", "_time"]).to_pylist() == [{"value": b"x", "_key": b"k", "_time": moment}]


# What a record is


def test_every_part_of_a_record_comes_back(log):
    log.create_topic("a")
    moment = datetime(2025, 6, 1, 12, tzinfo=UTC)
    with log.producer() as producer:
        producer.send("a", b"x", key=b"k", time=moment, headers={"trace": b"1", "from": b"test"})
        producer.send("a", "text", key="ü", time="1970-01-01T00:00:01Z")
        producer.send("a", None, key="gone")
        producer.send("a", {"value": b"by name"})
    stored = log.read("a", columns=["value", "_key", "_time", "_headers", "_tombstone"]).to_pylist()
    assert [record["value"] for record in stored] == [b"x", b"text", None, b"by name"]
    assert [record["_key"] for record in stored] == [b"k", "ü".encode(), b"gone", None]
    assert [record["_time"] for record in stored][:2] == [moment, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]
    assert [dict(record["_headers"]) for record in stored] == [{"trace": b"1", "from": b"test"}, {}, {}, {}]
    assert [record["_tombstone"] for record in stored] == [False, False, True, False]


def test_a_record_without_a_time_has_that_of_its_sending(log, clock):
    log.create_topic("a")
    sent_at = clock.now()
    with log.producer(linger="1 hour") as producer:
        producer.send("a", b"x")
        producer.send("a", b"y", time=datetime(1970, 1, 1, 0, 0, 0, 5, tzinfo=UTC))
        clock.advance(timedelta(minutes=1))
    assert [record["_time"].timestamp() * 1e6 for record in log.read("a").to_pylist()] == [sent_at, 5]


def test_a_time_next_to_one_record_leaves_the_times_of_its_neighbours_alone(log):
    log.create_topic("views", **VIEWS)
    first, second = datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 2, tzinfo=UTC)
    with log.producer() as producer:
        producer.send("views", {"url": "/a", "viewed_at": first})
        producer.send("views", {"url": "/b"}, time=second)
        producer.send("views", {"url": "/c"})
    assert log.read("views")["viewed_at"].to_pylist() == [first, second, None]


def test_a_key_next_to_a_tombstone_fills_the_key_columns(log):
    log.create_topic("a", schema="user string, device int, total int", key=("user", "device"))
    with log.producer() as producer:
        producer.send("a", {"user": "u", "device": 1, "total": 5})
        producer.send("a", None, key=("u", 1))
    stored = log.read("a", columns=["user", "device", "total", "_tombstone", "_key"]).to_pylist()
    assert stored[1] == {"user": "u", "device": 1, "total": None, "_tombstone": True, "_key": b'["u",1]'}
    assert stored[0]["_key"] == stored[1]["_key"]


@pytest.mark.parametrize(
    ("record", "fact"),
    [
        ({"value": {"link": "/a"}}, "no column 'link'"),
        ({"value": b"bytes"}, "topic 'views' has columns, bytes is not a record of it"),
        ({"value": 5}, "topic 'views' has columns, int is not a record of it"),
        ({"value": {"url": "/a"}, "time": "noon"}, "time='noon': 'noon' is not of type timestamp"),
        ({"value": {"url": "/a"}, "time": 1_767_268_800}, "time=1767268800: 1767268800 is a number without a unit"),
        ({"value": {"url": "/a"}, "headers": [1]}, r"headers=\[1\] are not headers"),
    ],
)
def test_a_record_that_cannot_fit_is_refused_by_send_itself(log, record, fact):
    log.create_topic("views", **VIEWS)
    with log.producer(linger="1 hour") as producer:
        with pytest.raises(SchemaError, match=fact):
            producer.send("views", **record)
        good = producer.send("views", {"url": "/good"})
    assert good.result() == (0, 0)
    assert log.read("views")["url"].to_pylist() == ["/good"]


def test_a_topic_of_bytes_takes_bytes_text_and_nothing_else(log):
    log.create_topic("a")
    with log.producer() as producer:
        for value in (5, ["x"], object()):
            with pytest.raises(SchemaError, match="takes bytes, not"):
                producer.send("a", value)
        with pytest.raises(SchemaError, match="no column 'other'"):
            producer.send("a", {"other": b"x"})


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ({"value": {"url": 5}}, SchemaError),
        ({"value": {"url": "/a", "viewed_at": "noon"}}, SchemaError),
        ({"value": {"url": "\ud800"}}, SchemaError),
        ({"value": {"url": "/a", "viewed_at": 1_767_268_800}}, SchemaError),
        ({"value": {"url": "/a"}, "key": ("/a", "too many")}, SchemaError),
        ({"value": {"url": "/a"}, "key": "/other"}, SchemaError),
        ({"value": {"url": "/a"}, "headers": {"trace": object()}}, SchemaError),
        ({"value": {"url": "/a"}, "headers": {5: b""}}, SchemaError),
        ({"value": {"url": "x" * 2_000_000}}, RecordTooLarge),
        ({"value": {"url": "/a"}, "time": datetime(9999, 1, 1, tzinfo=UTC)}, LogError),
    ],
)
def test_a_bad_record_fails_alone_and_its_neighbours_are_stored(log, bad, kind):
    log.create_topic("views", partitions=3, **VIEWS)
    producer = log.producer(linger="1 hour", batch_bytes=10_000_000)
    before = [producer.send("views", {"url": f"/before/{number}"}) for number in range(5)]
    refused = producer.send("views", **bad)
    after = [producer.send("views", {"url": f"/after/{number}"}) for number in range(5)]
    with pytest.raises(kind):
        producer.flush()
    with pytest.raises(kind):
        refused.result()
    stored = {(record["_partition"], record["_offset"]): record["url"] for record in log.read("views").to_pylist()}
    assert [stored[delivery.result()] for delivery in before + after] == [f"/before/{n}" for n in range(5)] + [
        f"/after/{n}" for n in range(5)
    ]
    assert len(stored) == 10
    producer.close()


def test_flush_raises_an_error_once(log):
    log.create_topic("a", config={"max.message.bytes": 10})
    with log.producer(linger="1 hour") as producer:
        producer.send("a", b"x" * 11)
        with pytest.raises(RecordTooLarge):
            producer.flush()
        producer.flush()
        producer.send("a", b"fits")
    assert values(log) == [b"fits"]


def test_leaving_the_block_raises_what_was_not_asked_for(log):
    log.create_topic("a", config={"max.message.bytes": 10})
    with pytest.raises(RecordTooLarge), log.producer(linger="1 hour") as producer:
        producer.send("a", b"x" * 11)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary() | st.datetimes() | st.timedeltas(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def any_log(tmp_path_factory):
    log = Log(tmp_path_factory.mktemp("any"))
    log.create_topic("t", schema="a bigint, b array<string>, c timestamp")
    return log


@settings(max_examples=examples(60))
@given(st.lists(st.fixed_dictionaries({"a": anything, "b": anything, "c": anything}), min_size=1, max_size=6))
def test_whatever_is_sent_each_record_is_stored_or_refused(any_log, rows):
    log, end = any_log, any_log.describe("t")["partitions"][0]["end"]
    producer = log.producer(linger="1 hour", acks="1")
    deliveries = [producer.send("t", row) for row in rows]
    try:
        producer.flush()
    except HeadraceError:
        assert any(delivery.error() for delivery in deliveries)
    producer.close()
    assert all(delivery.done() for delivery in deliveries)
    placed = [delivery.result().offset for delivery in deliveries if delivery.error() is None]
    assert placed == log.read("t", start=end)["_offset"].to_pylist()


# Acknowledgement, retries, idempotence


@pytest.mark.parametrize(("acks", "syncs"), [("all", 1), ("1", 0), (1, 0)])
def test_acks_all_waits_for_the_disk_and_acks_1_does_not(tmp_path, acks, syncs):
    disk = CountingDisk()
    log = Log(tmp_path, disk=disk)
    log.create_topic("a")
    with log.producer(acks=acks, linger="1 hour") as producer:
        producer.send("a", b"first")
        producer.flush()
        disk.taken()
        for _ in range(100):
            producer.send("a", b"x")
        producer.flush()
        assert disk.taken()["sync"] == syncs
    assert len(values(log)) == 101


@pytest.mark.parametrize("acks", ["0", "", 2, "most"])
def test_other_acks_are_refused(log, acks):
    with pytest.raises(SettingsError, match="is not known"):
        log.producer(acks=acks)


@pytest.mark.parametrize(
    "fault", ["disk.sync.before=error(EIO)@1-2", "disk.write.before=error(ENOSPC)@1-2", "disk.write.before=error(EIO)@2"]
)
def test_a_send_that_is_retried_is_stored_once(log, faults, fault):
    log.create_topic("a")
    with log.producer() as producer:
        producer.send("a", b"before")
        producer.flush()
        faults(fault)
        producer.send("a", b"retried")
        producer.flush()
        faults(None)
        producer.send("a", b"after")
    assert values(log) == [b"before", b"retried", b"after"]
    assert values(Log(log.path)) == [b"before", b"retried", b"after"]


def test_when_the_retries_are_used_up_the_error_is_told_and_the_producer_goes_on(log, faults):
    log.create_topic("a")
    producer = log.producer(retries=1, linger="1 hour")
    producer.send("a", b"before")
    producer.flush()
    faults("disk.write.before=error(ENOSPC)@1-2")
    lost = producer.send("a", b"lost")
    with pytest.raises(DiskFailed, match="No space left on device"):
        producer.flush()
    with pytest.raises(DiskFailed):
        lost.result()
    producer.send("a", b"after")
    producer.close()
    assert values(log) == [b"before", b"after"]


def test_a_partition_that_fails_does_not_take_the_records_of_the_others_along(log, faults):
    log.create_topic("a", partitions=4)
    producer = log.producer(retries=0, linger="1 hour", acks="1")
    producer.send_table("a", pa.table({"value": [b"x"] * 40, "_key": [b"%d" % number for number in range(40)]}))
    producer.flush()
    # Two writes an append, the segment and its index: the third is that of the second partition.
    faults("disk.write.before=error(EIO)@3")
    deliveries = {number: producer.send("a", b"%d" % number, key=b"%d" % number) for number in range(40)}
    with pytest.raises(DiskFailed):
        producer.flush()
    faults(None)
    failed = {number for number, delivery in deliveries.items() if delivery.error()}
    stored = {int(value) for value in values(log) if value != b"x"}
    assert failed
    assert stored == set(deliveries) - failed
    producer.close()


def test_an_append_found_in_the_log_is_not_repeated(log):
    """A retry whose first try did arrive: the same writer, generation and sequence."""
    log.create_topic("a")
    topic = log.topic("a")
    partition = log.partition(topic, 0)
    with log.producer() as producer:
        producer.send_table("a", pa.table({"value": [b"x", b"y"]}))
        writer = producer._appender._writer
    from headrace.log.files.layout import BatchLayout
    from headrace.log.files.partition import Author

    layout = BatchLayout(topic)
    stored = layout.stored(layout.arrange(pa.table({"value": [b"x", b"y"]}), log.clock.now()), log.clock.now())
    again = partition.append([stored], Author(writer, 0, 1), durable=True)
    assert (again.base, again.next, again.repeated) == (0, 2, True)
    assert values(log) == [b"x", b"y"]


# Closing and sharing


def test_a_closed_producer_refuses_and_may_be_closed_again(log):
    log.create_topic("a")
    producer = log.producer()
    producer.send("a", b"x")
    producer.close()
    producer.close()
    for call in (lambda: producer.send("a", b"y"), lambda: producer.send_table("a", pa.table({"value": [b"y"]}))):
        with pytest.raises(LogError, match="this producer is closed"):
            call()
    assert values(log) == [b"x"]


def test_closing_ends_the_producers_thread(log):
    log.create_topic("a")
    with log.producer() as producer:
        producer.send("a", b"x")
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "headrace-producer"]
    assert not thread.is_alive()


def test_threads_share_a_producer_and_each_keeps_its_order(tmp_path):
    log = Log(tmp_path)
    log.create_topic("a", partitions=3)
    failures = []

    def work(producer, thread):
        try:
            for number in range(500):
                producer.send("a", b"%d %d" % (thread, number), key=b"%d" % thread)
                if number % 100 == 99:
                    producer.flush()
        except HeadraceError as error:
            failures.append(error)

    with log.producer(acks="1", linger="1ms", batch_bytes=5_000) as producer:
        threads = [threading.Thread(target=work, args=(producer, thread)) for thread in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    sent = [tuple(map(int, value.split())) for value in values(log)]
    assert len(sent) == 3000
    for thread in range(6):
        assert [number for owner, number in sent if owner == thread] == list(range(500))


# Memory


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"abc", 67),
        ("abc", 67),
        (None, 64),
        ({"a": "xyz", "b": 5, "c": None}, 83),
        ({"a": ["x" * 1000, "y" * 1000]}, 2256),
        ({"a": {"b": "x" * 1000}}, 1128),
        ({"a": bytearray(1000)}, 8128),
    ],
)
def test_nested_values_count_for_the_memory_of_a_producer(value, expected):
    assert weight(value) == expected


@pytest.mark.parametrize("kind", ["bytes", "dict"])
def test_what_waits_is_bounded(tmp_path, kind):
    log = Log(tmp_path)
    log.create_topic("bytes")
    log.create_topic("dict", **VIEWS)
    bound = 500_000
    make = {"bytes": lambda n: b"%0100d" % n, "dict": lambda n: {"url": f"/page/{n}", "user": f"user-{n:050d}"}}[kind]
    with log.producer(acks="1", linger="1 hour", batch_bytes=100_000_000, buffer_memory=bound) as producer:
        producer.send(kind, make(0))
        producer.flush()
        tracemalloc.start()
        arrow_before, arrow_peak = pa.total_allocated_bytes(), 0
        for number in range(15_000):
            producer.send(kind, make(number))
            assert producer._buffered <= bound
            arrow_peak = max(arrow_peak, pa.total_allocated_bytes() - arrow_before)
        _, python_peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    # Small Python objects take more room than the bytes in them, and a batch is copied once into columns and once into its frame.
    assert python_peak < 8 * bound
    assert arrow_peak < 2 * bound
    assert log.read(kind, columns=["_offset"]).num_rows == 15_001


def test_what_waits_is_bounded_over_many_topics(log):
    for number in range(40):
        log.create_topic(f"t{number}")
    with log.producer(acks="1", linger="1 hour", buffer_memory=20_000) as producer:
        for number in range(2_000):
            producer.send(f"t{number % 40}", b"x" * 100)
            assert producer._buffered <= 20_000
    assert sum(log.read(f"t{number}").num_rows for number in range(40)) == 2_000


def test_producers_of_one_record_each_use_all_partitions(tmp_path):
    log = Log(tmp_path)
    log.create_topic("a", partitions=2)
    for _ in range(40):
        with log.producer(acks="1") as producer:
            producer.send("a", b"x")
    assert set(log.read("a")["_partition"].to_pylist()) == {0, 1}


@pytest.mark.parametrize(
    "record",
    [
        {"n": 1.5}, {"n": Decimal("0.1")}, {"n": math.nan}, {"n": 1, "at": 1767268800.5}, {"n": 1, "at": Decimal(5)}, {"n": 1, "at": 5},
        {"day": 5}, {"day": datetime(2026, 1, 1, 5, tzinfo=UTC)}, {"list": "12"}, {"f": 1e300}, {"f": True},
        {"map": {"a": [{"m": 1, "more": 2}]}},
        {"list": [1, 1.5]}, {"map": {"a": [{"m": 0.5}]}}, {"list": None, "map": {"a": [None], "b": [{"m": 1}, {"m": Decimal("1.5")}]}},
    ],
)  # fmt: skip
def test_no_value_is_cut_down_to_fit_its_column(log: Log, record: dict[str, object]):
    log.create_topic("numbers", schema="n int, at timestamp, day date, f float, list array<int>, map map<string,array<struct<m:bigint>>>")
    with pytest.raises(SchemaError, match="a record does not fit topic 'numbers'"), log.producer() as producer:
        producer.send("numbers", record).result()
    with log.producer() as producer:
        producer.send(
            "numbers",
            {"n": 2.0, "at": "2026-01-01", "day": "2026-01-01", "f": 1, "list": [None, 3.0], "map": {"a": [{"m": 1}, None], "b": None}},
        )
    assert log.read("numbers")["n"].to_pylist() == [2]
