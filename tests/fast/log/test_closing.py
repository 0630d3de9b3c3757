"""A log gives back what it holds open, and holds little however many topics there are."""

import gc
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.log import Log
from headrace.log.errors import LogClosed
from headrace.log.files.awake import Awake


def descriptors(path: Path) -> int:
    """How many files below a directory this process has open."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            found += str(link.readlink()).startswith(str(path))
        except FileNotFoundError:
            continue
    return found


def mapped(path: Path) -> int:
    return sum(str(path) in line for line in Path("/proc/self/maps").read_text().splitlines())


def fill(log: Log, topics: int) -> None:
    for number in range(topics):
        log.create_topic(f"t{number}", config={"segment.bytes": 1024})
        for epoch in range(3):
            log.append_epoch(f"t{number}", pa.table({"value": [b"x" * 900]}), writer="w", epoch=epoch)


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")


@needs_proc
def test_a_closed_log_holds_no_file_and_no_memory(tmp_path):
    with Log(tmp_path / "log") as log:
        fill(log, 3)
        consumer = log.consumer("t0", group="g")
        assert consumer.poll(timeout="0s").num_rows == 3
        assert descriptors(tmp_path) > 0
        consumer.close()
    del consumer, log
    gc.collect()
    assert descriptors(tmp_path) == 0
    assert mapped(tmp_path) == 0


@needs_proc
def test_descriptors_do_not_grow_with_the_number_of_topics(tmp_path):
    with Log(tmp_path / "log") as log:
        log._awake.limit = 5
        fill(log, 30)
        consumer = log.consumer([f"t{number}" for number in range(30)])
        while consumer.poll(timeout="0s"):
            pass
        assert descriptors(tmp_path) <= 5 * 4 + 4  # the partition that is being opened, and the catalog's lock
        for number in range(30):
            log.append_epoch(f"t{number}", pa.table({"value": [b"y"]}), writer="w", epoch=9)
        assert sorted(log.read(f"t{number}").num_rows for number in range(30)) == [4] * 30


@needs_proc
def test_readers_of_many_segments_hold_none_of_them_open(tmp_path):
    with Log(tmp_path / "log") as log:
        fill(log, 1)
        before = descriptors(tmp_path)
        readers = [log.consumer("t0", start=offset) for offset in (0, 1, 2) for _ in range(10)]
        tables = [reader.poll(timeout="0s", max_rows=1) for reader in readers]
        assert all(table.num_rows == 1 for table in tables)
        assert descriptors(tmp_path) <= before + 3  # the locks of the topic of transactions


def test_a_partition_with_records_that_are_not_durable_keeps_its_file(tmp_path):
    with Log(tmp_path / "log") as log:
        partition = log.partition(log.create_topic("t"), 0)
        with log.producer(acks="1", linger="0s") as producer:
            producer.send("t", b"x").result()
            assert not partition.rest()
        partition.sync()
        assert partition.rest()
        assert log.read("t").num_rows == 1


def test_use_after_close_says_so(tmp_path):
    log = Log(tmp_path / "log")
    log.create_topic("t")
    consumer, producer = log.consumer("t"), log.producer(linger="0s")
    producer.send("t", b"before").result()
    log.close()
    for use in (lambda: log.read("t"), lambda: consumer.poll(timeout="0s"), lambda: producer.send("t", b"after").result()):
        with pytest.raises(LogClosed, match="after its log was closed"):
            use()
    with pytest.raises(LogClosed):
        producer.close()
    with Log(tmp_path / "log") as again:
        assert again.read("t").num_rows == 1


def test_the_usual_bound_follows_what_the_process_may_open():
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert Awake().limit * 4 <= max(64, soft // 4)
