"""Retention: whole segments leave a partition from its front, and offsets go on."""

from datetime import timedelta

import pytest

from headrace.core.clock import to_datetime
from headrace.log import Log
from headrace.log.errors import OffsetOutOfRange

HOUR = 3_600_000


def fill(log, topic, count, size=100):
    """Records in segments of their own, the last one active."""
    for _ in range(count):
        with log.producer() as producer:
            producer.send(topic, bytes(size))
        log.partition(log.topic(topic), 0).roll()
    log.maintenance.wait()


def offsets(log, topic="a"):
    return log.read(topic)["_offset"].to_pylist()


def files(log, topic="a"):
    return sorted(path.name for path in (log.path / "topics" / topic / "0").iterdir() if path.suffix == ".segment")


def test_segments_leave_when_their_latest_record_is_too_old(log, clock):
    log.create_topic("a", config={"retention.ms": HOUR})
    fill(log, "a", 2)
    clock.advance(timedelta(minutes=40))
    fill(log, "a", 2)
    clock.advance(timedelta(minutes=40))
    [report] = log.maintain("a")
    assert (report.removed.segments, report.removed.start) == (2, 2)
    assert offsets(log) == [2, 3]
    assert files(log) == [f"{base:020d}.segment" for base in (2, 3, 4)]


def test_age_is_counted_from_the_latest_event_time(log, clock):
    log.create_topic("a", schema="at timestamp", time="at", config={"retention.ms": HOUR})
    now = clock.now()
    for minutes in (-90, -30, -90):
        with log.producer() as producer:
            producer.send("a", {"at": to_datetime(now + minutes * 60_000_000)})
            producer.send("a", {"at": to_datetime(now - 5 * HOUR * 1000)})
        log.partition(log.topic("a"), 0).roll()
    log.maintenance.wait()
    assert offsets(log) == [2, 3, 4, 5]  # the third is old as well, but behind one that is not


def test_without_event_times_age_is_counted_from_the_append(log, clock):
    log.create_topic("a", schema="id int, at timestamp", time="at", config={"retention.ms": HOUR})
    with log.producer() as producer:
        producer.send("a", {"id": 1})
    log.partition(log.topic("a"), 0).roll()
    clock.advance(timedelta(minutes=59))
    log.maintain("a")
    assert offsets(log) == [0]
    clock.advance(timedelta(minutes=2))
    log.maintain("a")
    assert offsets(log) == []


def test_at_least_retention_bytes_stay_and_at_most_a_segment_more(log):
    log.create_topic("a", config={"retention.bytes": 10_000, "segment.bytes": 2_000})
    with log.producer() as producer:
        for _ in range(60):
            producer.send("a", bytes(500))
            producer.flush()
    log.maintenance.wait()
    log.maintain("a")
    [partition] = log.describe("a")["partitions"]
    assert 10_000 <= partition["bytes"] < 12_000
    assert offsets(log) == list(range(partition["start"], 60))


def test_the_active_segment_goes_too_once_all_of_it_has_expired(log, clock, tmp_path):
    log.create_topic("a", config={"retention.ms": HOUR})
    with log.producer() as producer:
        producer.send("a", b"old")
    clock.advance(timedelta(hours=2))
    log.maintain("a")
    assert offsets(log) == []
    assert files(log) == [f"{1:020d}.segment"]
    other = Log(tmp_path / "log", clock=clock)
    with other.producer(linger="0s") as producer:
        assert producer.send("a", b"new").result().offset == 1


def test_offsets_go_on_after_everything_expired_and_the_head_is_lost(log, clock, tmp_path):
    log.create_topic("a", config={"retention.ms": HOUR})
    fill(log, "a", 3)
    clock.advance(timedelta(hours=2))
    log.maintain("a")
    (tmp_path / "log/topics/a/0/head").unlink()
    other = Log(tmp_path / "log", clock=clock)
    assert other.describe("a")["partitions"][0]["start"] == 3
    with other.producer(linger="0s") as producer:
        assert producer.send("a", b"new").result().offset == 3


def test_a_reader_of_what_was_removed_is_told_what_there_is(log, clock):
    log.create_topic("a", config={"retention.ms": HOUR})
    fill(log, "a", 2)
    with log.consumer("a") as slow:
        clock.advance(timedelta(hours=2))
        log.maintain("a")
        fill(log, "a", 1)
        with pytest.raises(OffsetOutOfRange, match="has no offset 0: it has 2 to 2"):
            slow.poll()
        slow.seek("beginning")
        assert slow.poll()["_offset"].to_pylist() == [2]


def test_a_reader_that_has_a_segment_open_when_it_is_removed_gets_records_or_the_error_never_garbage(log, clock):
    log.create_topic("a", config={"retention.ms": HOUR})
    with log.producer() as producer:
        for _ in range(3):
            producer.send("a", b"x")
            producer.flush()
    with log.consumer("a") as reader:
        table = reader.poll(max_rows=1)
        clock.advance(timedelta(hours=2))
        log.maintain("a")
        assert table["value"].to_pylist() == [b"x"]  # what was read stays, though its file is gone
        with pytest.raises(OffsetOutOfRange):
            reader.poll()


def test_without_limits_or_with_compaction_alone_nothing_is_removed(log, clock):
    log.create_topic("a")
    log.create_topic("b", config={"cleanup.policy": "compact", "retention.ms": 1, "retention.bytes": 1})
    fill(log, "a", 2)
    with log.producer() as producer:
        producer.send("b", b"x", key=b"k")
    clock.advance(timedelta(days=900))
    log.maintain()
    assert offsets(log, "a") == [0, 1]
    assert offsets(log, "b") == [0]


def test_compact_and_delete_does_both(log, clock):
    log.create_topic("a", config={"cleanup.policy": "compact,delete", "retention.ms": HOUR})
    for minutes, key in [(0, b"old"), (40, b"k"), (0, b"k")]:
        clock.advance(timedelta(minutes=minutes))
        with log.producer() as producer:
            producer.send("a", b"v", key=key)
        log.partition(log.topic("a"), 0).roll()
    log.maintenance.wait()
    log.maintain("a", force=True)
    assert offsets(log) == [0, 2]
    clock.advance(timedelta(minutes=30))
    log.maintain("a", force=True)
    log.maintain("a", force=True)
    assert offsets(log) == [0, 2]  # merged with younger records, an old one stays until these expire too
    clock.advance(timedelta(minutes=31))
    log.maintain("a")
    assert offsets(log) == []


# Deleting records


def test_deleted_records_are_not_read_again_and_whole_segments_are_gone(log, tmp_path, clock):
    log.create_topic("a")
    fill(log, "a", 3)
    with log.producer() as producer:
        producer.send("a", b"3")
        producer.send("a", b"4")
    assert log.delete_records("a", 0, before=4).segments == 3
    assert offsets(log) == [4]
    (tmp_path / "log/topics/a/0/head").unlink()  # as after a power cut
    assert offsets(Log(tmp_path / "log", clock=clock)) == [4]


def test_deleting_everything_keeps_the_next_offset(log):
    log.create_topic("a")
    fill(log, "a", 2)
    with log.producer() as producer:
        producer.send("a", b"2")
    log.delete_records("a", 0, before=3)
    assert files(log) == [f"{3:020d}.segment"]
    with log.producer(linger="0s") as producer:
        assert producer.send("a", b"x").result().offset == 3


@pytest.mark.parametrize("before", [-1, 3])
def test_deleting_before_an_offset_that_is_not_there_is_refused(log, before):
    log.create_topic("a")
    fill(log, "a", 2)
    with pytest.raises(OffsetOutOfRange):
        log.delete_records("a", 0, before=before)
    assert offsets(log) == [0, 1]


def test_deleting_what_is_deleted_already_changes_nothing(log):
    log.create_topic("a")
    fill(log, "a", 3)
    log.delete_records("a", 0, before=2)
    log.delete_records("a", 0, before=1)
    assert offsets(log) == [2]
