"""Compaction in one process and writers and readers in others: the table that readers fold is always one that was."""

import subprocess
import sys

import pytest

from headrace.log import Log
from tests.support.processes import until

KEYS = 20

# Each key counts up from 0 to the last number; every record says its number.
WRITER = """
import sys
from headrace.log import Log
first, last = int(sys.argv[2]), int(sys.argv[3])
with Log(sys.argv[1]).producer(linger="0s", acks="1") as producer:
    for number in range(last + 1):
        for key in range(first, first + 10):
            producer.send("a", b"%d" % number, key=b"%d" % key).result()
"""

COMPACTOR = """
import sys
from headrace.log import Log
log = Log(sys.argv[1])
while True:
    [report] = log.maintain("a", force=True)
    if report.error is not None:
        raise report.error
    print(report.compacted.records_removed, flush=True)
"""

# Reads from the beginning to the end, again and again, and to the last record of each key once more after the writers are done.
READER = """
import sys
from headrace.log import Log
log, last = Log(sys.argv[1]), int(sys.argv[2])
rounds, folded = 0, {}
while len(folded) < 20 or set(folded.values()) != {last}:
    folded, place = {}, -1
    with log.consumer("a") as consumer:
        while (table := consumer.poll(max_rows=500, timeout="0s")) is not None:
            for offset, key, value in zip(*(table[name].to_pylist() for name in ("_offset", "_key", "value"))):
                assert offset > place, (offset, place)
                assert int(value) > folded.get(key, -1), (key, value, folded[key])
                place, folded[key] = offset, int(value)
    rounds += 1
print(rounds)
"""


@pytest.fixture
def start(tmp_path):
    processes = []

    def started(script, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "log"), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield started
    for process in processes:
        process.kill()
        process.communicate()


def test_readers_and_writers_go_on_during_compaction(tmp_path, start):
    log = Log(tmp_path / "log")
    log.create_topic("a", config={"cleanup.policy": "compact", "segment.bytes": 10_000})
    last = 80
    writers = [start(WRITER, 0, last), start(WRITER, 10, last)]
    compactor = start(COMPACTOR)
    readers = [start(READER, last), start(READER, last)]
    for process in (*writers, *readers):
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
    assert compactor.poll() is None, compactor.stderr.read()
    until(lambda: log.read("a").num_rows <= 1_000)
    table = log.snapshot("a").table
    assert dict(zip(table["_key"].to_pylist(), table["value"].to_pylist(), strict=True)) == {
        b"%d" % key: b"%d" % last for key in range(KEYS)
    }
