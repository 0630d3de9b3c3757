"""Several processes use one log at once: nothing is lost, nothing is there twice, and each writer's order is kept."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.log import Log
from tests.support.processes import PATIENCE

WRITER = """
import sys
import time
from headrace.log import Log
path, writer, count, acks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
log = Log(path)
print("ready", flush=True)
sys.stdin.readline()
with log.producer(acks=acks, linger="1ms", batch_bytes=2_000) as producer:
    for number in range(count):
        producer.send("t", {"writer": writer, "number": number}, key=writer)
"""

READER = """
import sys
import time
from headrace.log import Log
path, count = sys.argv[1], int(sys.argv[2])
consumer = Log(path).consumer("t")
print("ready", flush=True)
seen = 0
while seen < count:
    table = consumer.poll(max_rows=1000, timeout="60s")
    if table is None:
        sys.exit(f"only {seen} of {count} records came")
    for writer, number, partition, offset in zip(*(table[name].to_pylist() for name in ("writer", "number", "_partition", "_offset"))):
        print(writer, number, partition, offset)
    seen += table.num_rows
"""

TRANSACTIONS = """
import sys
import time
from headrace.log import Log
path, writer, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
log = Log(path)
with log.producer(transactional_id=f"writer {writer}") as producer:
    for number in range(count):
        producer.begin_transaction()
        for topic in ("t", "u"):
            producer.send(topic, {"writer": writer, "number": number})
        producer.abort_transaction() if number % 3 == 0 else producer.commit_transaction()
"""


@contextmanager
def started(program: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def run_together(commands: list[tuple[object, ...]]) -> None:
    """Start programs that wait for a line, give it to all, and see each of them succeed."""
    processes = [subprocess.Popen([sys.executable, "-c", *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                 for command in commands]  # fmt: skip
    try:
        for process in processes:
            ready(process)
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        assert [process.wait(timeout=200) for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("acks", ["all", "1"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_what_several_processes_append_is_all_there_once_and_in_each_writers_order(tmp_path, partitions, acks):
    log = Log(tmp_path)
    log.create_topic("t", partitions=partitions, schema="writer int, number int", key="writer", config={"segment.bytes": 20_000})
    writers, count = 4, 3_000
    run_together([(WRITER, tmp_path, writer, count, acks) for writer in range(writers)])
    stored = log.read("t").to_pylist()
    assert len(stored) == writers * count
    for writer in range(writers):
        mine = [record for record in stored if record["writer"] == writer]
        assert [record["number"] for record in mine] == list(range(count))
        assert len({record["_partition"] for record in mine}) == 1
    for partition in range(partitions):
        offsets = [record["_offset"] for record in stored if record["_partition"] == partition]
        assert offsets == list(range(len(offsets)))


def test_readers_in_other_processes_see_appends_as_they_happen(tmp_path):
    log = Log(tmp_path)
    log.create_topic("t", partitions=2, schema="writer int, number int", key="writer")
    writers, count = 2, 2_000
    with started(READER, tmp_path, writers * count) as one, started(READER, tmp_path, writers * count) as other:
        ready(one)
        ready(other)
        run_together([(WRITER, tmp_path, writer, count, "all") for writer in range(writers)])
        for reader in (one, other):
            output, _ = reader.communicate(timeout=200)
            assert reader.returncode == 0
            seen = [tuple(map(int, line.split())) for line in output.splitlines()]
            assert len({(partition, offset) for _, _, partition, offset in seen}) == writers * count
            for writer in range(writers):
                assert [number for owner, number, *_ in seen if owner == writer] == list(range(count))


def committed(log, topic):
    return {(record["writer"], record["number"]) for record in log.read(topic, columns=["writer", "number"]).to_pylist()}


def test_transactions_of_several_processes_are_seen_whole(tmp_path):
    log = Log(tmp_path)
    for topic in ("t", "u"):
        log.create_topic(topic, schema="writer int, number int")
    writers, count = 3, 60
    processes = [subprocess.Popen([sys.executable, "-c", TRANSACTIONS, tmp_path, str(writer), str(count)]) for writer in range(writers)]
    try:
        while any(process.poll() is None for process in processes):
            # What is committed in one topic is in the other, too, as soon as no open transaction stands before it there.
            first, deadline = committed(log, "t"), time.monotonic() + PATIENCE
            while not first <= (second := committed(log, "u")):
                assert time.monotonic() < deadline, first - second
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0] * writers
    expected = {(writer, number) for writer in range(writers) for number in range(count) if number % 3}
    for topic in ("t", "u"):
        assert committed(log, topic) == expected
        assert log.read(topic).num_rows == len(expected)


def test_a_forked_child_shares_the_log_with_its_parent(tmp_path):
    program = """
import os, sys
from headrace.log import Log
log = Log(sys.argv[1])
log.create_topic("t", schema="writer int, number int")
log.append_epoch("t", __import__("pyarrow").table({"writer": [9], "number": [9]}), writer="before", epoch=1)
child = os.fork()
writer = 0 if child else 1
with log.producer(acks="1") as producer:
    for number in range(500):
        producer.send("t", {"writer": writer, "number": number})
        if number % 50 == 0:
            producer.flush()
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, tmp_path], check=False, timeout=120)
    assert done.returncode == 0
    stored = Log(tmp_path).read("t").to_pylist()
    for writer in (0, 1):
        assert [record["number"] for record in stored if record["writer"] == writer] == list(range(500))


def test_the_log_needs_no_other_process_and_leaves_none(tmp_path):
    Log(tmp_path).create_topic("t")
    program = "import sys\nfrom headrace.log import Log\nwith Log(sys.argv[1]).producer() as p:\n    p.send('t', b'x')\n"
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True, timeout=200)
    own = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path).encode() in _read(path)]
    assert own == []
    assert Log(tmp_path).read("t").num_rows == 1


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it ended meanwhile
        return b""
