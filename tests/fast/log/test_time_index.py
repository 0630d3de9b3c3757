"""The offset for a time, and the latest time of any range of offsets, always as a plain list would say."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.log import Log
from headrace.log.errors import CorruptLog
from tests.support.examples import examples

batches = st.lists(st.lists(st.none() | st.integers(-50, 50), min_size=1, max_size=6), max_size=8)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with Log(tmp_path_factory.mktemp("log")) as log:
        yield log


def fill(log: Log, topic: str, content: list[list[int | None]]) -> list[int | None]:
    for epoch, times in enumerate(content):
        log.append_epoch(topic, pa.table({"at": pa.array(times, pa.timestamp("us", "UTC"))}), writer="fill", epoch=epoch)
    return [moment for times in content for moment in times]


@settings(max_examples=examples(20))
@given(
    content=batches,
    segment_bytes=st.sampled_from([1024, 2**20]),
    moments=st.lists(st.integers(-52, 52), min_size=5, max_size=5),
    ranges=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=10, max_size=10),
)
def test_the_index_says_what_a_list_says(shared, content, segment_bytes, moments, ranges):
    shared.create_topic("t", schema="at timestamp", time="at", config={"segment.bytes": segment_bytes})
    try:
        times = fill(shared, "t", content)
        for moment in moments:
            expected = next((offset for offset, at in enumerate(times) if at is not None and at >= moment), None)
            assert shared.offsets_for_time("t", moment) == {0: expected}
        for first, last in ranges:
            expected = max((at for at in times[first:last] if at is not None), default=None)
            assert shared.max_event_time("t", 0, first, last) == expected
    finally:
        shared.delete_topic("t")


@settings(max_examples=examples(20))
@given(content=batches, removed=st.integers(0, 40), moments=st.lists(st.integers(-52, 52), min_size=5, max_size=5))
def test_times_of_removed_records_do_not_hide_those_of_others(shared, content, removed, moments):
    """Each segment says how late all before it are at most, also those that are gone."""
    shared.create_topic("t", schema="at timestamp", time="at", config={"segment.bytes": 1024})
    try:
        times = fill(shared, "t", content)
        first = min(removed, len(times))
        shared.delete_records("t", 0, first)
        for moment in moments:
            expected = next((offset for offset, at in enumerate(times) if offset >= first and at is not None and at >= moment), None)
            assert shared.offsets_for_time("t", moment) == {0: expected}
    finally:
        shared.delete_topic("t")


def test_each_partition_has_its_own_offset_for_a_time(log):
    log.create_topic("t", partitions=3, schema="at timestamp", time="at")
    for partition, times in enumerate([[10, 20, 30], [25], []]):
        if times:
            table = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC"))})
            log.append_epoch("t", table, writer="w", epoch=partition, partition=partition)
    assert log.offsets_for_time("t", 20) == {0: 1, 1: 0, 2: None}


def test_without_a_time_column_the_time_given_or_that_of_sending_counts(log, clock):
    log.create_topic("t")
    with log.producer(linger="0s") as producer:
        producer.send("t", b"past", time=datetime(2020, 1, 1, tzinfo=UTC)).result()
        clock.advance(timedelta(seconds=5))
        producer.send("t", b"now")
    assert log.offsets_for_time("t", clock.now()) == {0: 1}
    assert log.max_event_time("t", 0, 0, 1) == int(datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1_000_000)
    assert log.max_event_time("t", 0, 0, 2) == clock.now()


def test_whole_batches_are_answered_from_the_index_alone(log):
    """Damage to the records themselves goes unnoticed, because they are not read."""
    log.create_topic("t", schema="at timestamp", time="at")
    fill(log, "t", [[1, 5], [3, 4]])
    (path,) = (log.path / "topics" / "t" / "0").glob("*.segment")
    data = bytearray(path.read_bytes())
    data[data.rfind((4).to_bytes(8, "little"))] ^= 0xFF
    path.write_bytes(data)
    again = Log(log.path)
    assert again.max_event_time("t", 0, 0, 4) == 5
    assert again.max_event_time("t", 0, 2, 4) == 4
    with pytest.raises(CorruptLog):
        again.max_event_time("t", 0, 3, 4)


def test_a_range_without_records_has_no_time(log):
    log.create_topic("t", schema="at timestamp", time="at")
    fill(log, "t", [[1, 5], [None]])
    for first, last in [(0, 0), (2, 2), (2, 3), (3, 9), (5, 2)]:
        assert log.max_event_time("t", 0, first, last) is None
