"""Damage to the files of a log: a cut tail is found and cut off, every flipped bit is harmless or detected, never served."""

import logging
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from headrace.core.clock import ManualClock
from headrace.log import Log
from headrace.log.errors import CorruptLog
from headrace.log.files.cursor import Cursor
from headrace.log.files.frame import MORE, SECTOR
from headrace.log.files.partition import Partition
from headrace.log.files.segment import Segment
from headrace.log.files.writers import Author
from tests.support.damage import Files, copy_of, everywhere, in_memory, make_log, results
from tests.support.examples import soaked

FLIPS = soaked(10_000, 2_000)
LAST = 64 * 1024
DIRECTORY = "log/topics/t/0"
NAME = f"{0:020d}.segment"


@pytest.fixture
def place():
    with in_memory() as path:
        yield path


# Cuts


def make_long_segment(path: Path) -> None:
    """One segment of more than 64 KiB: appends of one batch and of several, small and large, with text and with zeros."""
    log = Log(path / "log", clock=ManualClock())
    log.create_topic("t")
    partition = log.partition(log.topic("t"), 0)
    random = Random(3)
    while partition.state().position < LAST + 1024:
        append(partition, [random.choice((b"x", b"\0")) * random.choice((10, 500, 6000, 9000)) for _ in range(random.choice((1, 1, 2, 3)))])


def append(partition: Partition, values: list[bytes]) -> int:
    batches = [partition.layout.arrange(pa.table({"value": [value]}), 0) for value in values]
    return partition.append([partition.layout.stored(batch, 0) for batch in batches], Author(), durable=True).base


def cut_everywhere(job: tuple[Path, list[int], bool]) -> None:
    """Cut at each of some bytes: the appends before it are there, all others are not, and appends go on."""
    original, cuts, with_head = job
    logging.disable(logging.CRITICAL)
    path = copy_of(original, original.parent)
    log = Log(path / "log", clock=ManualClock())
    topic = log.topic("t")
    kept = {name: (path / DIRECTORY / name).read_bytes() for name in ("head", NAME, NAME.replace("segment", "index"))}
    appends = appends_of(Segment(log.disk, path / DIRECTORY, 0))
    rows = list(enumerate(log.read("t")["value"].to_pylist()))
    edges = edges_of(appends)
    for cut in cuts:
        for name, data in kept.items():
            (path / DIRECTORY / name).write_bytes(data[:cut] if name == NAME else data)
        if not with_head:
            (path / DIRECTORY / "head").unlink()
        partition = Partition(log.disk, path / DIRECTORY, topic, 0, log.clock)
        end, count = max((found for found in appends if found[0] <= cut), default=(192, 0))
        # Without the head nothing tells that there was more; with it no offset is given a second time.
        following = len(rows) if with_head else count
        state = partition.state()
        assert (state.position, state.visible, state.durable) == (end, following, following), cut
        assert (path / DIRECTORY / NAME).stat().st_size == end
        # Reading takes longer than recovering: the content is looked at around the ends of appends, and here and there.
        if cut in edges or cut % 16 == 0:
            assert append(partition, [b"next"]) == following, cut
            batches = Cursor(partition, 0).read(columns=("_offset", "value"))
            found = [row for batch in batches for row in zip(batch["_offset"].to_pylist(), batch["value"].to_pylist(), strict=True)]
            assert found == [*rows[:count], (following, b"next")], cut


def appends_of(segment: Segment) -> list[tuple[int, int]]:
    """Where each append of a segment ends, and the offset after it."""
    found, position = [], segment.first
    while position < segment.size:
        frame = segment.frame_at(position, segment.size)
        position = frame.end
        if not frame.flags & MORE:
            found.append((frame.end, frame.next))
    return found


def edges_of(appends: list[tuple[int, int]]) -> set[int]:
    return {edge for end, _ in appends for edge in range(end - 2, end + 3)}


@pytest.mark.parametrize(("with_head", "step"), [(True, soaked(1, 7)), (False, 29)])
def test_a_segment_cut_at_any_byte_of_its_last_64_kib_has_the_appends_before(place, with_head, step):
    make_long_segment(place / "original")
    segment = Segment(Log(place / "original" / "log", clock=ManualClock()).disk, place / "original" / DIRECTORY, 0)
    first = segment.size - LAST
    edges = {edge for edge in edges_of(appends_of(segment)) if first <= edge <= segment.size}
    cuts = sorted(edges.union(range(first, segment.size + 1, step)))
    everywhere(cut_everywhere, [(place / "original", cuts[part::2], with_head) for part in (0, 1)])


# Flips


def flip_bits(job: tuple[Path, str, range]) -> tuple[int, int]:
    """Flip one bit after the other; how many were detected, and how many did no harm."""
    original, restart, seeds = job
    logging.disable(logging.CRITICAL)
    path = copy_of(original, original.parent)
    expected = results(path)
    assert not any(isinstance(found, CorruptLog) for found in expected.values())
    files = Files(path)
    if restart:
        files = files.restart(heads=restart == "heads")
    detected = 0
    for seed in seeds:
        random = Random(seed)
        chosen = [file for file, data in files.content.items() if data]
        # Small files are hit as often as large ones.
        weights = [1 if seed % 2 else len(files.content[file]) for file in chosen]
        file = random.choices(chosen, weights)[0]
        bit = random.randrange(8 * len(files.content[file]))
        data = bytearray(files.content[file])
        data[bit // 8] ^= 1 << bit % 8
        file.write_bytes(data)
        found = results(path, file.relative_to(path).parts[1])
        for use, result in found.items():
            if isinstance(result, CorruptLog):
                assert result.hint
            else:
                assert result == expected[use] or _cleared_sector(data, bit // 8), f"seed {seed}: bit {bit} of {file}: {use}"
        detected += any(isinstance(result, CorruptLog) for result in found.values())
        files.put_back()
    return detected, len(seeds) - detected


def _cleared_sector(data: bytes, place: int) -> bool:
    """The one flip that looks like a torn write: it cleared the only bit of a sector."""
    start = place // SECTOR * SECTOR
    return not any(data[start : start + SECTOR])


@pytest.mark.parametrize(("restart", "flips"), [("", FLIPS), ("heads", soaked(1_000, 500)), ("no heads", soaked(1_000, 500))])
def test_no_flipped_bit_is_ever_served(place, restart, flips):
    make_log(place / "original")
    counts = everywhere(flip_bits, [(place / "original", restart, range(part, flips, 2)) for part in range(2)])
    detected, harmless = (sum(numbers) for numbers in zip(*counts, strict=True))
    assert detected + harmless == flips
    # Most bits are in records, and flipping one of these is never harmless.
    assert detected > flips / 4
