"""A segment that somebody cuts short while it is mapped is told as corruption; reading what is gone would end the process."""

import os
import subprocess
import sys

import pyarrow as pa
import pytest

from headrace.log import Consumer, Log
from headrace.log.errors import CorruptLog

ROWS = pa.table({"value": [os.urandom(20_000) for _ in range(10)]})


def cut(log: Log, size: int) -> None:
    first = min((log.path / "topics" / "t" / "0").glob("*.segment"))
    os.truncate(first, size)


def drain(consumer: Consumer) -> None:
    while consumer.poll(max_rows=20, timeout="0s") is not None:
        pass


@pytest.fixture
def filled(log):
    """Two closed segments of ten batches each, and an empty one."""
    log.create_topic("t", config={"segment.bytes": 2**21})
    for epoch in range(20):
        log.append_epoch("t", ROWS, writer="w", epoch=epoch)
    return log


@pytest.mark.parametrize("size", [0, 100, 4096, 100_000, 700_000])
def test_a_reader_in_the_middle_of_a_segment_that_is_cut_short_gets_an_error(filled, size):
    consumer = filled.consumer("t")
    assert consumer.poll(max_rows=20, timeout="0s").num_rows == 20
    cut(filled, size)
    with pytest.raises(CorruptLog):
        drain(consumer)
    assert consumer.positions()["t", 0] < 100


def test_what_is_before_the_cut_can_still_be_read(filled):
    consumer = filled.consumer("t")
    assert consumer.poll(max_rows=10, timeout="0s").num_rows == 10
    cut(filled, 700_000)
    assert consumer.poll(max_rows=10, timeout="0s")["_offset"].to_pylist() == list(range(10, 20))


PROGRAM = """
import os, sys
from pathlib import Path
from headrace.log import Log
from headrace.log.errors import CorruptLog
log = Log(sys.argv[1])
consumer = log.consumer("t")
kept = consumer.poll(max_rows=10, timeout="0s")
os.truncate(min((log.path / "topics" / "t" / "0").glob("*.segment")), 4096)
try:
    consumer.poll(max_rows=10, timeout="0s")
except CorruptLog:
    print("told")
"""


def test_a_process_survives_the_cut(filled):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(filled.path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "told\n"), done.stderr
