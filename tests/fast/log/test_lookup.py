"""A search in an index file finds what a look at the whole segment finds, whatever state the file is in."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from headrace.log import Log
from headrace.log.files.cursor import Cursor, locate, max_event_time

APPENDS = 100


@pytest.fixture
def filled(tmp_path) -> Log:
    """Appends of one to three records each; compaction left gaps in the first segments."""
    log = Log(tmp_path)
    log.create_topic(
        "t", schema="k string, at timestamp", key="k", time="at", config={"cleanup.policy": "compact", "segment.bytes": 30_000}
    )
    random = Random(7)
    with log.producer(acks="1") as producer:
        for number in range(APPENDS):
            count = random.randint(1, 3)
            rows = {"k": [str(random.randint(0, 60)) for _ in range(count)], "at": pa.array([number] * count, pa.timestamp("us", "UTC"))}
            producer.send_table("t", pa.table(rows))
    log.maintain("t", force=True)
    return log


def segments(log: Log) -> list:
    partition = log.partition(log.topic("t"), 0)
    state = partition.state()
    found, offset = [], state.start
    while not found or found[-1][0].base != state.segment:
        _, segment, _ = locate(partition, offset)
        end = state.visible_position if segment.base == state.segment else segment.size
        whole = segment.scan_index(end)
        found.append((segment, end, whole))
        offset = int(whole["next"][-1])
    return found


def expected(whole: np.ndarray, first: int, last: int) -> list[int]:
    place = int(np.searchsorted(whole["next"], first, side="right"))
    return whole["base"][place : max(int(np.searchsorted(whole["base"], last)), place + 1)].tolist()


def damaged(data: bytes, kind: str) -> bytes:
    return {
        "sound": data,
        "torn at the end": data + data[:60],
        "ahead of the segment": data + bytes(128),
        "behind the segment": data[: len(data) // 256 * 128],
        "empty": b"",
        "changed in the middle": data[: len(data) // 2] + b"\xff" * 8 + data[len(data) // 2 + 8 :],
        "of another segment": data[128:] + data[:128],
    }[kind]


KINDS = ["sound", "torn at the end", "ahead of the segment", "behind the segment", "empty", "changed in the middle", "of another segment"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_finds_the_frames_that_the_segment_has(filled, kind):
    random = Random(11)
    checked = 0
    for segment, end, whole in segments(filled):
        segment.index_path.write_bytes(damaged(segment.index_path.read_bytes(), kind))
        bounds = range(int(whole["base"][0]) - 1, int(whole["next"][-1]) + 2)
        for first in bounds:
            last = first + random.choice([0, 1, 5, 1_000])
            assert segment.entries(first, last, end)["base"].tolist() == expected(whole, first, last)
            checked += 1
    assert checked > APPENDS


def test_without_an_index_file_offsets_are_found_in_the_segment(filled):
    expected = filled.read("t", columns=["_offset"])["_offset"].to_pylist()
    for segment, _, _ in segments(filled):
        segment.index_path.unlink()
    cursor = Cursor(filled.partition(filled.topic("t"), 0), expected[5])
    assert [offset for batch in cursor.read(columns=("_offset",)) for offset in batch.column(0).to_pylist()] == expected[5:]


def test_the_latest_time_is_that_of_the_records_in_the_range(filled):
    partition = filled.partition(filled.topic("t"), 0)
    records = filled.read("t", columns=["_offset", "at"])
    offsets, times = records["_offset"].to_numpy(), records["at"].cast(pa.int64()).to_numpy()
    random = Random(3)
    for _ in range(200):
        first, last = sorted((random.randint(0, offsets[-1]), random.randint(0, offsets[-1] + 1)))
        inside = times[(offsets >= first) & (offsets < last)]
        assert max_event_time(partition, first, last) == (inside.max() if len(inside) else None)
