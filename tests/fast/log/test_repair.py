"""Repair: only what is damaged is given up, the report says what, and everything goes on behind it."""

import shutil

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.core.clock import ManualClock
from headrace.log import Log
from headrace.log.errors import CorruptLog
from headrace.log.files.durable_number import START
from headrace.log.files.examination import examine
from tests.support.examples import examples

SEGMENTS, BATCHES, ROWS = 3, 4, 5


def fill(log, topic="a", segments=SEGMENTS, **settings):
    """Segments of a few batches of a few records; the last one is the active one."""
    for number in range(segments):
        if number:
            log.partition(log.topic(topic), 0).roll()
        with log.producer(**settings) as producer:
            for _ in range(BATCHES):
                producer.send_table(
                    topic, pa.table({"value": [b"%d" % row for row in range(ROWS)], "_key": [b"k%d" % row for row in range(ROWS)]})
                )


@pytest.fixture
def topic(log):
    log.create_topic("a")
    fill(log)
    return log.topic("a")


@pytest.fixture
def reopened(tmp_path, clock):
    return lambda: Log(tmp_path / "log", clock=clock)


def offsets(log, topic="a", **options):
    return log.read(topic, **options)["_offset"].to_pylist()


def directory(log, topic="a"):
    return log.path / "topics" / topic / "0"


def segment(log, number, topic="a"):
    return sorted(directory(log, topic).glob("*.segment"))[number]


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 0x40
    path.write_bytes(data)


def batch_in(log, number, batch):
    """The frame of a batch of a segment."""
    return examine(log.disk, directory(log), int(segment(log, number).stem)).headers[batch]


def everything(without=()):
    return [offset for offset in range(SEGMENTS * BATCHES * ROWS) if not any(offset in gap for gap in without)]


def check_goes_on(log, gone, end=SEGMENTS * BATCHES * ROWS):
    """Everything else is read, and the next record gets an offset that no record ever had."""
    assert offsets(log) == [offset for offset in range(end) if not any(offset in gap for gap in gone)]
    with log.producer(linger="0s") as producer:
        assert producer.send("a", b"next").result().offset >= end
    assert log.read("a")["value"].to_pylist()[-1] == b"next"


def test_an_undamaged_partition_stays_as_it_is(log, topic):
    before = {path.name: path.read_bytes() for path in directory(log).glob("*.segment")}
    report = log.repair("a", 0)
    assert (report.lost, report.kept, report.notes) == ((), (), ())
    assert {path.name: path.read_bytes() for path in directory(log).glob("*.segment")} == before
    check_goes_on(log, [])


@pytest.mark.parametrize("number", range(SEGMENTS))
@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("place", ["header", "body"])
def test_a_damaged_batch_is_given_up_alone(log, topic, number, batch, place):
    frame = batch_in(log, number, batch)
    path = segment(log, number)
    damaged = path.read_bytes()
    if place == "header":
        (path.with_suffix(".index")).unlink()
    flip(path, frame.position + (8 if place == "header" else 200))
    with pytest.raises(CorruptLog, match=r"log.repair\(topic, partition\)"):
        offsets(log)
    flipped = path.read_bytes()
    assert flipped != damaged
    report = log.repair("a", 0)
    assert report.lost == (range(frame.base, frame.next),)
    assert [kept.read_bytes() for kept in report.kept] == [flipped]
    check_goes_on(log, report.lost)


def test_a_damaged_header_is_taken_from_the_index_and_nothing_is_lost(log, topic):
    flip(segment(log, 1), batch_in(log, 1, 2).position + 8)
    report = log.repair("a", 0)
    assert report.lost == ()
    assert len(report.kept) == 1
    check_goes_on(log, [])


def test_damage_found_after_the_machine_started_again_is_repaired_too(log, topic, reopened):
    frame = batch_in(log, 2, 1)
    flip(segment(log, 2), frame.position + 200)
    (directory(log) / "head").unlink()
    other = reopened()
    with pytest.raises(CorruptLog):
        offsets(other)
    assert other.repair("a", 0).lost == (range(frame.base, frame.next),)
    check_goes_on(other, [range(frame.base, frame.next)])


def test_a_reader_goes_on_with_a_gap_and_loses_nothing_it_had_read(log, topic):
    frame = batch_in(log, 0, 2)
    flip(segment(log, 0), frame.position + 200)
    with log.consumer("a") as reader:
        assert reader.poll()["_offset"].to_pylist() == list(range(frame.base))
        for _ in range(2):
            with pytest.raises(CorruptLog):
                reader.poll()
        log.repair("a", 0)
        seen = reader.poll()["_offset"].to_pylist()
    assert seen == everything()[frame.next :]


def test_other_processes_write_on_after_a_repair(log, topic, reopened):
    other = reopened()
    with other.producer(linger="0s") as producer:
        producer.send("a", b"x").result()
        frame = batch_in(log, 2, 1)
        flip(segment(log, 2), frame.position + 200)
        log.repair("a", 0)
        assert producer.send("a", b"y").result().offset > 60
    assert log.read("a")["value"].to_pylist()[-2:] == [b"x", b"y"]
    assert offsets(log) == offsets(other)


def test_a_damaged_first_block_is_made_anew_from_the_topics_columns(log, topic):
    for number in range(SEGMENTS):
        flip(segment(log, number), 40)
    report = log.repair("a", 0)
    assert report.lost == ()
    assert len(report.kept) == SEGMENTS
    check_goes_on(log, [])


def test_a_damaged_first_block_of_an_empty_segment_is_made_anew(log):
    log.create_topic("a")
    flip(segment(log, 0), 40)
    (directory(log) / "head").unlink(missing_ok=True)
    other = Log(log.path, clock=log.clock)
    with pytest.raises(CorruptLog):
        offsets(other)
    assert other.repair("a", 0).lost == ()
    check_goes_on(other, [], end=0)


def test_columns_added_in_between_are_told_from_the_records_themselves(log):
    log.create_topic("a", schema="id int")
    for schema in ("id int, name string", "id int, name string, more double"):
        with log.producer() as producer:
            producer.send("a", {"id": 1})
            producer.send("a", {"id": 2})
        log.alter_topic("a", schema=schema)
    with log.producer() as producer:
        producer.send("a", {"id": 3, "name": "x", "more": 1.5})
    before = log.read("a").to_pylist()
    flip(segment(log, 1), 40)
    assert log.repair("a", 0).lost == ()
    assert log.read("a").to_pylist() == before


def test_a_lost_tail_is_given_up_to_the_end_that_the_head_knows(log, topic):
    frame = batch_in(log, 2, 2)
    path = segment(log, 2)
    path.write_bytes(path.read_bytes()[: frame.position + 10])
    path.with_suffix(".index").unlink()
    report = log.repair("a", 0)
    assert report.lost == (range(frame.base, 60),)
    check_goes_on(log, report.lost)


def test_a_lost_tail_that_nothing_tells_of_is_skipped_by_far(log, topic, reopened):
    frame = batch_in(log, 2, 2)
    path = segment(log, 2)
    data = bytearray(path.read_bytes())
    data[frame.position : frame.position + 128] = b"\xff" * 128
    flip_from = batch_in(log, 2, 3).position
    data[flip_from : flip_from + 128] = b"\xff" * 128
    path.write_bytes(data)
    path.with_suffix(".index").unlink()
    (directory(log) / "head").unlink()
    other = reopened()
    report = other.repair("a", 0)
    assert report.lost[0].start == frame.base
    assert "offsets continue at" in report.notes[0]
    with other.producer(linger="0s") as producer:
        assert producer.send("a", b"next").result().offset == report.lost[0].stop > 60


def test_a_closed_segment_that_was_cut_off_is_given_up_from_there(log, topic):
    frame = batch_in(log, 1, 2)
    path = segment(log, 1)
    path.write_bytes(path.read_bytes()[: frame.position])
    report = log.repair("a", 0)
    assert [offset for gap in report.lost for offset in gap] == list(range(frame.base, 40))
    check_goes_on(log, report.lost)


def test_a_missing_last_segment_is_given_up(log, topic):
    segment(log, 2).unlink()
    other = Log(log.path, clock=log.clock)
    with pytest.raises(CorruptLog):
        offsets(other)
    report = other.repair("a", 0)
    assert report.lost == (range(40, 60),)
    check_goes_on(other, report.lost)


def test_a_damaged_file_of_writers_is_rebuilt_from_the_segments_before(log, reopened):
    log.create_topic("a")
    rows = pa.table({"value": [b"x"]})
    for epoch in (3, 4):
        log.append_epoch("a", rows, writer="job", epoch=epoch)
        log.partition(log.topic("a"), 0).roll()
    path = sorted(directory(log).glob("*.writers"))[-1]
    flip(path, 10)
    other = reopened()
    with pytest.raises(CorruptLog, match="which appends are already stored"):
        other.append_epoch("a", rows, writer="job", epoch=4)
    report = other.repair("a", 0)
    assert (report.lost, report.notes, [kept.name for kept in report.kept]) == ((), (), [f"{path.name}.corrupt"])
    assert other.append_epoch("a", rows, writer="job", epoch=4)[0].repeated
    assert not other.append_epoch("a", rows, writer="job", epoch=5)[0].repeated


def test_what_writers_did_is_known_also_after_their_segments_were_compacted(log, reopened):
    log.create_topic("a", config={"cleanup.policy": "compact"})
    rows = pa.table({"value": [b"x"], "_key": [b"k"]})
    for epoch in (3, 4, 5):
        log.append_epoch("a", rows, writer="job", epoch=epoch)
    log.partition(log.topic("a"), 0).roll()
    log.maintenance.wait()
    log.maintain("a", force=True)
    flip(sorted(directory(log).glob("*.writers"))[-1], 10)
    other = reopened()
    assert other.repair("a", 0).notes == ()
    assert other.append_epoch("a", rows, writer="job", epoch=5)[0].repeated


def test_if_what_writers_did_cannot_be_known_the_report_says_so(log, reopened):
    log.create_topic("a", config={"cleanup.policy": "compact"})
    log.append_epoch("a", pa.table({"value": [b"x"], "_key": [b"k"]}), writer="job", epoch=3)
    log.partition(log.topic("a"), 0).roll()
    log.maintenance.wait()
    log.maintain("a", force=True)
    flip(sorted(directory(log).glob("*.writers"))[-1], 10)
    for path in directory(log).glob("*.learned"):
        path.unlink()
    assert "may be stored twice" in reopened().repair("a", 0).notes[0]


def test_a_damaged_mark_of_the_first_offset_is_taken_from_the_head(log, topic, reopened):
    log.delete_records("a", 0, before=7)
    flip(directory(log) / START, 3)
    assert log.repair("a", 0).notes == ()
    assert offsets(reopened())[0] == 7


def test_a_compacted_segment_is_repaired_batch_by_batch(log):
    log.create_topic("a", config={"cleanup.policy": "compact"})
    big = [bytes([row]) * 400_000 for row in range(8)]
    with log.producer() as producer:
        for row, value in enumerate(big):
            producer.send("a", value, key=b"k%d" % row)
            producer.send("a", b"old", key=b"k%d" % ((row + 1) % 8))
    partition = log.partition(log.topic("a"), 0)
    partition.roll()
    log.maintenance.wait()
    log.maintain("a", force=True)
    before = offsets(log)
    frames = examine(log.disk, directory(log), 0).headers
    assert len(frames) > 2
    flip(segment(log, 0), frames[1].position + 1_000)
    report = log.repair("a", 0)
    assert report.lost == (range(frames[1].base, frames[1].next),)
    assert offsets(log) == [offset for offset in before if offset not in report.lost[0]]


def test_a_second_repair_keeps_the_first_ones_files(log, topic):
    names = []
    for batch in (1, 1):
        flip(segment(log, 0), batch_in(log, 0, batch).position + 200)
        names += [kept.name for kept in log.repair("a", 0).kept]
    assert names == [f"{0:020d}.segment.corrupt", f"{0:020d}.segment.corrupt2"]
    assert offsets(log) == [*range(5), *range(15, 60)]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    log = Log(tmp_path_factory.mktemp("repair") / "log", clock=ManualClock())
    log.create_topic("a")
    fill(log)
    return log.path


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.integers(0, SEGMENTS - 1), st.sampled_from([".segment", ".index", ".writers"]), st.floats(0, 0.999), st.integers(1, 300)
        )
    ),
    st.booleans(),
)
def test_whatever_is_overwritten_what_is_left_is_true_and_nothing_else_is_said_to_be_lost(tmp_path, original, damages, restarted):
    path = tmp_path / "copy"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(original, path)
    for number, suffix, share, length in damages:
        file = sorted((path / "topics/a/0").glob("*.segment"))[number].with_suffix(suffix)
        if file.exists() and file.stat().st_size:
            data = bytearray(file.read_bytes())
            start = int(share * len(data))
            for place in range(start, min(start + length, len(data))):
                data[place] ^= 0x5A
            file.write_bytes(data)
    if restarted:
        (path / "topics/a/0/head").unlink()
    log = Log(path, clock=ManualClock())
    report = log.repair("a", 0)
    table = log.read("a", columns=["_offset", "value"])
    found = dict(zip(table["_offset"].to_pylist(), table["value"].to_pylist(), strict=True))
    assert all(value == b"%d" % (offset % ROWS) for offset, value in found.items())
    assert set(range(60)) - set(found) <= {offset for gap in report.lost for offset in gap if offset < 60}
    assert not any(offset in gap for gap in report.lost for offset in found)
    with log.producer(linger="0s") as producer:
        assert producer.send("a", b"next").result().offset >= 60
    assert log.repair("a", 0).lost == ()
