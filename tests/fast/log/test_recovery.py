"""The effects of one crash, one failed sync or one flipped bit on a log, on a simulated machine or with real files."""

import os
import shutil
import threading
from datetime import timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from headrace.core import failpoints
from headrace.core.clock import ManualClock
from headrace.core.files.disk import PosixDisk
from headrace.log import Log
from headrace.log.errors import CorruptLog, DiskFailed, RecordLost, TopicDeleted
from headrace.log.files.head import Head
from headrace.log.files.writers import Author, named
from headrace.testing.disk import Crash, Machine
from tests.support.examples import seeds
from tests.support.processes import PATIENCE, until

HOME = Path("/log")
NOBODY = Author()


@pytest.fixture
def machine():
    machine = Machine(Random(1))
    process(machine).create_topic("t")
    return machine


@pytest.fixture
def failing():
    yield failpoints.configure
    failpoints.configure(None)


def process(machine: Machine) -> Log:
    """A log as one more process of the machine has it open."""
    return Log(HOME, disk=machine.process(), clock=ManualClock())


def append(log: Log, *values: bytes, author: Author = NOBODY, durable: bool = True, topic: str = "t"):
    partition = log.partition(log.topic(topic), 0)
    batches = [partition.layout.arrange(pa.table({"value": [value]}), 0) for value in values]
    return partition.append([partition.layout.stored(batch, 0) for batch in batches], author, durable=durable)


def values(log: Log, topic: str = "t", **options) -> list[bytes]:
    return log.read(topic, columns=["value"], **options)["value"].to_pylist()


def crash_at(machine: Machine, kind: str, number: int = 1):
    """Kill the process that comes to its `number`th operation of a kind."""
    left = number

    def before(disk, step):
        nonlocal left
        left -= step == kind
        if left == 0 and step == kind:
            machine.before = lambda disk, step: None
            machine.kill(disk)
            raise Crash

    machine.before = before


def crash(action) -> None:
    with pytest.raises(Crash):
        action()


# Between processes


def test_an_append_that_another_process_undid_is_stored_when_it_is_sent_again(machine):
    first, second = process(machine), process(machine)
    append(second, b"before")

    def fail(disk, kind):
        if kind == "sync":
            machine.before = lambda disk, kind: None
            # The second process sees the append while it is written and not yet durable.
            assert second.partition(second.topic("t"), 0).last_sequence(7) == 1
            raise OSError(5, "Input/output error")

    machine.before = fail
    with pytest.raises(DiskFailed):
        append(first, b"once", author=Author(7, 0, 1))
    assert not append(second, b"once", author=Author(7, 0, 1)).repeated
    assert values(first) == values(second) == [b"before", b"once"]


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_segment_that_a_dying_process_began_does_not_hide_what_the_next_one_appends(machine, power_cut):
    log = process(machine)
    append(log, b"0")
    crash_at(machine, "sync_directory", 2)
    crash(log.partition(log.topic("t"), 0).roll)
    other = process(machine)
    append(other, b"1")
    other.partition(other.topic("t"), 0).roll()
    append(other, b"2")
    if power_cut:
        machine.cut_power(luck=0)
        other = process(machine)
    assert values(other) == [b"0", b"1", b"2"]
    assert values(other, start=1) == [b"1", b"2"]
    assert append(other, b"3").base == 3


def test_a_reader_finds_offsets_after_an_append_was_undone(machine):
    log = process(machine)
    append(log, b"0")
    crash_at(machine, "unlock")
    crash(lambda: append(log, *[b"lost"] * 4))
    other = process(machine)
    append(other, b"1", b"2")
    assert values(process(machine), start=2) == [b"2"]


def test_of_two_decisions_the_first_holds_though_its_maker_died_before_it_was_durable(machine):
    log = process(machine)
    producer = log.producer(transactional_id="w", linger=None)
    producer.begin_transaction()
    producer.send("t", b"x").result()
    log.partition(log.topic("t"), 0).sync()
    crash_at(machine, "sync")
    crash(producer.commit_transaction)
    reader, writer = process(machine), process(machine)
    assert values(reader) == []
    # The new generation finds the commit in the log, and must not abort what a reader may see as committed at any moment.
    writer.producer(transactional_id="w", linger=None)
    assert values(reader) == values(writer) == [b"x"]


# After a power cut


def test_offsets_that_were_seen_before_they_were_durable_are_not_given_again(machine):
    log = process(machine)
    append(log, b"durable")
    append(log, b"seen", durable=False)
    assert values(log) == [b"durable", b"seen"]
    for _ in range(2):
        machine.cut_power(luck=0)
        log = process(machine)
        assert values(log) == [b"durable"]
    assert append(log, b"next").base > 1
    assert values(log) == [b"durable", b"next"]


def test_a_new_log_is_there_after_a_power_cut():
    machine = Machine(Random(1))
    log = process(machine)
    log.create_topic("t")
    append(log, b"x")
    machine.cut_power(luck=0)
    assert values(process(machine)) == [b"x"]


def test_half_an_append_is_not_kept(machine):
    log = process(machine)
    append(log, b"0")
    crash_at(machine, "sync")
    crash(lambda: append(log, *[bytes([65 + number]) * 400 for number in range(6)]))

    def left(seed, luck):
        copy = Machine(Random(seed), machine.root.restart(Random(seed), luck))
        copy.boots = 2
        return values(process(copy))

    assert left(0, luck=0.0) == [b"0"]
    assert {len(left(seed, luck=0.7)) for seed in seeds(320)} <= {1, 7}


# Failed syncs


def test_what_a_failed_sync_was_to_make_durable_is_written_again_by_the_next_process(machine):
    log = process(machine)
    append(log, b"seen", durable=False)

    def fail(disk, kind):
        if kind == "sync":
            crash_at(machine, "lock")
            raise OSError(5, "Input/output error")

    machine.before = fail
    crash(log.partition(log.topic("t"), 0).sync)
    other = process(machine)
    append(other, b"durable")
    machine.cut_power(luck=0)
    assert values(process(machine)) == [b"seen", b"durable"]


def test_a_segment_is_not_closed_next_to_a_sync_that_fails(tmp_path, failing):
    log = Log(tmp_path, clock=ManualClock())
    log.create_topic("t")
    partition = log.partition(log.topic("t"), 0)
    append(log, b"0")
    failing("disk.sync.before=delay(0.2)@1;disk.sync.after=error(EIO)@1")
    errors = []

    def send() -> None:
        try:
            append(log, b"lost")
        except (DiskFailed, RecordLost) as error:
            errors.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    until(lambda: bool(failpoints.hits["disk.sync.before"]))
    partition.roll()
    thread.join()
    assert len(errors) == 1
    assert values(log) == [b"0"]


@pytest.mark.parametrize("use", [lambda p: p.roll(), lambda p: p.sync(), lambda p: p.raise_start(1)])
def test_an_error_of_the_disk_has_a_name_whatever_is_done(tmp_path, failing, use):
    log = Log(tmp_path, clock=ManualClock())
    log.create_topic("t")
    append(log, b"0", durable=False)
    failing("disk.sync.before=error(EIO);disk.sync_directory.before=error(EIO)")
    with pytest.raises(DiskFailed, match="Input/output error"):
        use(log.partition(log.topic("t"), 0))
    failpoints.configure(None)
    assert values(log) == [b"0"]


def test_a_partition_whose_files_are_gone_says_that_its_topic_was_deleted(tmp_path):
    log = Log(tmp_path, clock=ManualClock())
    log.create_topic("t")
    append(log, b"0")
    partition = log.partition(log.topic("t"), 0)
    shutil.rmtree(tmp_path / "topics" / "t")
    with pytest.raises(TopicDeleted):
        partition.roll()


# Flipped bits


def flip(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def segment_of(home: Path, base: int = 0, suffix: str = "segment") -> Path:
    return home / "topics" / "t" / "0" / f"{base:020d}.{suffix}"


def restart(home: Path, *, head: bool = False) -> Log:
    """The log after a restart of the machine, which had the time to write the head down, or had not."""
    path = home / "topics" / "t" / "0" / "head"
    if head:
        flip_boot(path)
    else:
        path.unlink()
    return Log(home, clock=ManualClock())


def flip_boot(path: Path) -> None:
    memory = memoryview(bytearray(path.read_bytes()))
    state = Head(memory).load()
    Head(memory).store(state._replace(boot=state.boot + 1))
    path.write_bytes(memory)


@pytest.fixture
def home(tmp_path):
    log = Log(tmp_path, clock=ManualClock())
    log.create_topic("t")
    return tmp_path


def test_a_damaged_writers_file_is_told_each_time_and_nothing_is_stored_twice(home):
    log = Log(home, clock=ManualClock())
    log.append_epoch("t", pa.table({"value": [b"x"]}), writer="job", epoch=1)
    log.partition(log.topic("t"), 0).roll()
    flip(segment_of(home, 1, "writers"), 9)
    other = Log(home, clock=ManualClock())
    for _ in range(3):
        with pytest.raises(CorruptLog, match="writers"):
            other.append_epoch("t", pa.table({"value": [b"x"]}), writer="job", epoch=1)


def test_a_damaged_index_does_not_make_writers_forgotten(home):
    log = Log(home, clock=ManualClock())
    log.append_epoch("t", pa.table({"value": [b"x"]}), writer="job", epoch=1)
    log.partition(log.topic("t"), 0).roll()
    append(log, b"y")
    flip(segment_of(home, 1, "index"), 40)
    other = Log(home, clock=ManualClock())
    assert other.append_epoch("t", pa.table({"value": [b"x"]}), writer="job", epoch=1)[0].repeated
    assert other.partition(other.topic("t"), 0).last_sequence(named("job")) == 1


@pytest.mark.parametrize("bit", range(32))
def test_a_damaged_first_block_never_passes_for_an_interrupted_creation(home, bit):
    append(Log(home, clock=ManualClock()), b"x")
    flip(segment_of(home), 24 + bit // 8, bit % 8)
    with pytest.raises(CorruptLog):
        values(restart(home))


def test_a_flipped_bit_in_the_last_append_is_told_from_a_torn_write(home):
    append(Log(home, clock=ManualClock()), bytes(3000) + b"x" + bytes(3000))
    whole = segment_of(home).read_bytes()
    for position in range(192, 192 + 128 + 64, 3):
        flip(segment_of(home), position, position % 8)
        with pytest.raises(CorruptLog):
            values(restart(home))
        segment_of(home).write_bytes(whole)
    # A sector that was never written reads as zeros.
    segment_of(home).write_bytes(whole[:512] + bytes(512) + whole[1024:])
    assert values(restart(home)) == [bytes(3000) + b"x" + bytes(3000)]
    lost = next(place for place in range(0, len(whole), 512) if b"x" in whole[place : place + 512] and place > 512)
    segment_of(home).write_bytes(whole[:lost] + bytes(512) + whole[lost + 512 :])
    assert values(restart(home)) == []


def test_the_head_of_before_the_restart_proves_what_was_durable(home):
    append(Log(home, clock=ManualClock()), b"x" * 3000)
    whole = segment_of(home).read_bytes()
    segment_of(home).write_bytes(whole[:1024] + bytes(512) + whole[1536:])
    with pytest.raises(CorruptLog):
        values(restart(home, head=True))


def test_a_torn_tail_may_end_like_a_header(home):
    append(Log(home, clock=ManualClock()), b"x")
    with segment_of(home).open("ab") as file:
        file.write(bytes(512) + b"HRF1".ljust(64, b"\1"))
    assert values(restart(home)) == [b"x"]


# Threads and forks


def test_threads_share_the_decisions_on_transactions(tmp_path):
    log = Log(tmp_path, clock=ManualClock())
    log.create_topic("t")
    found: list[int] = []

    def read() -> None:
        consumer, count = log.consumer("t"), 0
        while count < 40:
            table = consumer.poll(timeout=timedelta(seconds=PATIENCE))
            assert table is not None
            count += table.num_rows
        found.append(count)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    producer = log.producer(transactional_id="w", linger=None)
    for number in range(80):
        producer.begin_transaction()
        producer.send("t", b"%d" % number)
        (producer.abort_transaction if number % 2 else producer.commit_transaction)()
    for reader in readers:
        reader.join()
    assert found == [40, 40, 40]


def test_a_child_does_not_keep_the_lock_of_its_dead_parent(tmp_path):
    lock = PosixDisk().lock(tmp_path / "lock")
    held, hold = os.pipe()
    alive, live = os.pipe()
    if os.fork() == 0:
        parents = PosixDisk().lock(tmp_path / "lock")
        parents.acquire()
        if os.fork() == 0:
            os.write(hold, b"x")
            os.close(live)
            os.read(alive, 1)
        os._exit(0)
    os.read(held, 1)
    os.wait()
    assert lock.acquire(wait=False)
    lock.release()
    for descriptor in (held, hold, alive, live):
        os.close(descriptor)
