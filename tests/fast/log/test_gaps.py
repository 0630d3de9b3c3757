"""Records missing without a trace at the end of a closed segment: found by every reader and by repair, and never a false alarm."""

from datetime import timedelta
from random import Random

import pyarrow as pa
import pytest

from headrace.core.clock import ManualClock
from headrace.log import Log
from headrace.log.errors import CorruptLog
from headrace.log.files.segment import Segment
from headrace.testing.disk import Machine

BATCHES, ROWS = 3, 4
SEGMENT = BATCHES * ROWS
COMPACT = {"cleanup.policy": "compact", "delete.retention.ms": 1000}


def fill(log, segments=3, key=b"%d"):
    """Segments of a few batches; the last one is the active one."""
    for number in range(segments):
        if number:
            log.partition(log.topic("a"), 0).roll()
        for batch in range(BATCHES):
            keys = [key % (number * SEGMENT + batch * ROWS + row) for row in range(ROWS)]
            log.append_epoch("a", pa.table({"value": keys, "_key": keys}), writer="w", epoch=number * BATCHES + batch + 1)


def cut(log, number, batches, *, index=False):
    """Leave only the first batches of a closed segment."""
    directory = log.path / "topics/a/0"
    path = sorted(directory.glob("*.segment"))[number]
    segment = Segment(log.disk, directory, int(path.stem))
    entries = segment.index(segment.size)
    end, base = int(entries["position"][batches]), int(entries["base"][batches])
    path.write_bytes(path.read_bytes()[:end])
    if index:
        path.with_suffix(".index").write_bytes(path.with_suffix(".index").read_bytes()[: 128 * batches])
    return base


def offsets(log, **options):
    return log.read("a", **options)["_offset"].to_pylist()


@pytest.fixture
def filled(log):
    log.create_topic("a")
    fill(log)
    return log


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("batches", range(BATCHES))
@pytest.mark.parametrize("number", [0, 1])
def test_a_reader_never_passes_by_batches_that_are_missing(filled, open_log, number, batches, index):
    missing = cut(filled, number, batches, index=index)
    log = open_log()
    consumer = log.consumer("a")
    found = []
    while len(found) < missing:
        found += consumer.poll(timeout="0s")["_offset"].to_pylist()
    assert found == list(range(missing))
    with pytest.raises(CorruptLog, match=f"from offset {missing} on are missing"):
        consumer.poll(timeout="0s")
    with pytest.raises(CorruptLog):
        offsets(log)
    with pytest.raises(CorruptLog):
        offsets(log, start=missing + 1)
    with pytest.raises(CorruptLog):
        log.max_event_time("a", 0, 0, 3 * SEGMENT)
    assert offsets(log, start=2 * SEGMENT) == list(range(2 * SEGMENT, 3 * SEGMENT))


@pytest.mark.parametrize("index", [False, True])
def test_repair_gives_up_what_is_missing_and_nothing_else(filled, open_log, index):
    missing = cut(filled, 1, 1, index=index)
    log = open_log()
    report = log.repair("a", 0)
    assert report.lost
    assert sorted(offset for gap in report.lost for offset in gap) == list(range(missing, 2 * SEGMENT))
    kept = [*range(missing), *range(2 * SEGMENT, 3 * SEGMENT)]
    for reader in (log, open_log()):
        assert offsets(reader) == kept
        assert offsets(reader, start=missing) == kept[missing:]
    assert log.repair("a", 0).lost == ()
    with log.producer() as producer:
        assert producer.send("a", b"next").result().offset == 3 * SEGMENT


def test_a_missing_segment_is_found_and_given_up(filled, open_log):
    sorted((filled.path / "topics/a/0").glob("*.segment"))[1].unlink()
    log = open_log()
    with pytest.raises(CorruptLog):
        offsets(log)
    assert log.repair("a", 0).lost == (range(SEGMENT, 2 * SEGMENT),)
    assert offsets(log) == [*range(SEGMENT), *range(2 * SEGMENT, 3 * SEGMENT)]


def test_compaction_does_not_make_a_loss_final(log, clock, open_log):
    log.create_topic("a", config=COMPACT | {"min.compaction.lag.ms": 1000})
    fill(log)
    log.maintenance.wait()
    cut(log, 1, 1)
    clock.advance(timedelta(hours=1))
    log = open_log()
    [report] = log.maintain("a", force=True)
    assert isinstance(report.error, CorruptLog)
    with pytest.raises(CorruptLog):
        offsets(log)


def test_a_compacted_segment_that_lost_its_end_is_found_and_repaired(log, clock, open_log):
    log.create_topic("a", config=COMPACT)
    fill(log)
    log.maintenance.wait()
    log.maintain("a", force=True)
    [path, _] = sorted((log.path / "topics/a/0").glob("*.segment"))
    segment = Segment(log.disk, path.parent, 0)
    path.write_bytes(path.read_bytes()[: segment.first])
    log = open_log()
    with pytest.raises(CorruptLog):
        offsets(log)
    assert log.repair("a", 0).lost == (range(2 * SEGMENT),)
    assert offsets(log) == list(range(2 * SEGMENT, 3 * SEGMENT))
    clock.advance(timedelta(hours=1))
    [report] = log.maintain("a", force=True)
    assert report.error is None
    assert offsets(log) == list(range(2 * SEGMENT, 3 * SEGMENT))


def test_a_compacted_segment_without_records_is_no_gap(log, clock):
    log.create_topic("a", config=COMPACT)
    with log.producer(linger="0s") as producer:
        for number in range(4):
            producer.send("a", b"x", key=b"%d" % number)
        for number in range(4):
            producer.send("a", None, key=b"%d" % number)
    log.partition(log.topic("a"), 0).roll()
    log.maintenance.wait()
    for _ in range(3):
        log.maintain("a", force=True)
        clock.advance(timedelta(hours=1))
    with log.producer() as producer:
        producer.send("a", b"last", key=b"k")
    assert offsets(log) == [8]
    assert log.max_event_time("a", 0, 2, 6) is None
    log.partition(log.topic("a"), 0).roll()
    [report] = log.maintain("a", force=True)
    assert report.error is None
    assert offsets(log) == [8]


def test_offsets_passed_over_after_a_power_cut_are_no_gap():
    machine, clock = Machine(Random(1)), ManualClock()
    log = Log("/log", disk=machine.process(), clock=clock)
    log.create_topic("a")
    with log.producer() as producer:
        producer.send("a", b"durable")
    with log.producer(acks="1") as producer:
        producer.send("a", b"only seen")
    machine.cut_power(luck=0.0)
    log = Log("/log", disk=machine.process(), clock=clock)
    partition = log.partition(log.topic("a"), 0)
    partition.roll()
    with log.producer() as producer:
        after = producer.send("a", b"after").result().offset
    partition.roll()
    assert after > 2
    assert offsets(log) == [0, after]
    assert offsets(log, start=1) == [after]


def test_a_segment_that_takes_the_place_of_an_empty_one_is_no_gap(log):
    log.create_topic("a", schema="id bigint")
    with log.producer() as producer:
        producer.send("a", {"id": 1})
    log.partition(log.topic("a"), 0).roll()
    log.alter_topic("a", schema="id bigint, name string")
    with log.producer() as producer:
        producer.send("a", {"id": 2, "name": "x"})
    assert offsets(log) == [0, 1]
    assert offsets(log, start=1) == [1]
