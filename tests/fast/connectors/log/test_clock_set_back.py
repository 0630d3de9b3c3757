"""A topic as an input when the wall clock was set back while a transaction was open."""

from datetime import timedelta
from pathlib import Path

import pytest

from headrace.connectors.log import input as log_input
from headrace.connectors.log.input import LogInput
from headrace.core.clock import ManualClock, to_datetime
from headrace.log import Log
from headrace.log.errors import Fenced


def test_a_transaction_from_before_the_clock_was_set_back_is_aborted_once_later_records_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    log = Log(tmp_path, clock=clock)
    log.create_topic("t", schema="n int, at timestamp", time="at", config={"segment.bytes": 1024})
    noon = to_datetime(clock.now())
    slow = log.producer(transactional_id="slow")
    slow.begin_transaction()
    slow.send("t", {"n": 1, "at": noon})
    slow.flush()
    clock.advance(timedelta(hours=-2))
    with log.producer(linger=None) as producer:
        for n in range(2, 30):
            producer.send("t", {"n": n, "at": noon - timedelta(hours=2)})
    clock.advance(timedelta(minutes=2))
    # A process that begins to read has only the times of appends to go by.
    monkeypatch.setitem(log_input._logs, tmp_path, Log(tmp_path, clock=clock))
    source = LogInput(tmp_path, "t", ("n",), "at")
    start, end = source.beginning(), source.end()
    assert end == {0: 29}
    assert source.ahead(start, end, None, clock.now() * 2).latest == {0: (clock.now() // 1_000_000 - 120) * 1_000_000}
    assert [row["n"] for batch in source.read(0, 0, end[0]) for row in batch.to_pylist()] == list(range(2, 30))
    with pytest.raises(Fenced):
        slow.commit_transaction()
    slow.close()
