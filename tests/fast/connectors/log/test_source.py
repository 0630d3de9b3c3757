"""The log as Spark's source reads exactly the records between two offsets, whatever lies among them."""

import threading

import pyarrow as pa
import pytest

from headrace.connectors.log.source import offsets, options, read, spans
from headrace.log import Log


@pytest.fixture
def log(tmp_path):
    log = Log(tmp_path)
    log.create_topic("t", partitions=2, schema="n int")
    return log


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int32())})


def numbers(log: Log, span: tuple[int, int, int]) -> list[int]:
    return [number for batch in read(log, "t", span) for number in batch.column("n").to_pylist()]


def test_offsets_are_the_beginning_the_end_or_those_given(log):
    log.append_epoch("t", rows(1, 2, 3), writer="w", epoch=1, partition=1)
    assert offsets(log, "t", "beginning") == {"0": 0, "1": 0}
    assert offsets(log, "t", "end") == {"0": 0, "1": 3}
    assert offsets(log, "t", options(log.path, "t", {0: 0, 1: 2})["start"]) == {"0": 0, "1": 2}


def test_only_partitions_with_something_new_are_read(log):
    assert spans({"0": 5, "1": 2}, {"0": 5, "1": 4}) == [(1, 2, 4)]
    assert spans({"0": 5}, {"0": 6, "1": 4}) == [(0, 5, 6), (1, 0, 4)]


def test_a_span_is_read_to_its_end_and_no_further(log):
    for epoch in range(5):
        log.append_epoch("t", rows(*range(10 * epoch, 10 * epoch + 10)), writer="w", epoch=epoch, partition=0)
    assert numbers(log, (0, 0, 50)) == list(range(50))
    assert numbers(log, (0, 7, 23)) == list(range(7, 23))
    assert numbers(log, (0, 50, 50)) == []


def test_records_of_an_aborted_transaction_leave_a_gap_that_is_not_filled_from_behind(log):
    with log.producer(transactional_id="t") as producer:
        for number in range(6):
            producer.begin_transaction()
            producer.send_table("t", rows(number))
            producer.abort_transaction() if number % 2 else producer.commit_transaction()
    spread = spans({}, offsets(log, "t", "end"))
    assert sorted(number for span in spread for number in numbers(log, span)) == [0, 2, 4]


def test_an_open_transaction_is_waited_for_not_skipped(log):
    log.create_topic("one", schema="n int")
    producer = log.producer(transactional_id="t")
    producer.begin_transaction()
    producer.send_table("one", rows(1))
    log.append_epoch("one", rows(2), writer="w", epoch=1)
    found: list[int] = []
    reader = threading.Thread(
        target=lambda: found.extend(n for batch in read(log, "one", (0, 0, 2)) for n in batch.column("n").to_pylist())
    )
    reader.start()
    producer.commit_transaction()
    reader.join(30)
    producer.close()
    assert found == [1, 2]
