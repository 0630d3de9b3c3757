"""The requirements of every input. Each case takes a subject with an empty stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count

import pyarrow as pa

from headrace.connectors.input import Position
from headrace.connectors.loss import InputLost
from headrace.core.clock import to_microseconds
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.testing.conformance.reading import InputReading
from headrace.testing.conformance.source_subject import NOON, STREAM, SourceSubject, numbered

_PATIENCE = 30.0
SourceCase = Callable[[SourceSubject], None]


def a_range_gives_the_same_records_every_time(subject: SourceSubject) -> None:
    subject.send(numbered(*range(50)))
    source, end = subject.input(), subject.input().end()
    whole = _rows(source.read(0, 0, end[0]))
    assert [n for _, n in whole] == list(range(50))
    offsets = [offset for offset, _ in whole]
    subject.send(numbered(*range(50, 60)))
    for first, last in [(0, end[0]), (offsets[7], offsets[8]), (offsets[20], offsets[45]), (offsets[3], offsets[3])]:
        expected = [(offset, n) for offset, n in whole if first <= offset < last]
        assert _rows(source.read(0, first, last)) == _rows(subject.input().read(0, first, last)) == expected


def a_read_that_is_broken_off_can_be_repeated(subject: SourceSubject) -> None:
    subject.send(numbered(*range(30)))
    source, end = subject.input(), subject.input().end()[0]
    begun = iter(source.read(0, 0, end))
    next(begun)
    begun.close()  # type: ignore[attr-defined] # reads are generators
    assert [n for _, n in _rows(source.read(0, 0, end))] == list(range(30))


def an_epoch_reads_about_as_many_records_as_its_bound(subject: SourceSubject) -> None:
    subject.send(numbered(*range(40)))
    job, sizes = subject.reading(), list[int]()
    while (end := job.plan(rows=15)) is not None:
        sizes.append(len(_numbers(job, end)))
        job.commit(end)
    assert sum(sizes) == 40
    assert max(sizes) <= 16


def an_open_transaction_is_read_when_it_is_committed_and_so_are_later_records(subject: SourceSubject) -> None:
    subject.send(numbered(1))
    job = subject.reading()
    transaction = subject.begin(numbered(2))
    subject.send(numbered(3))
    assert _caught_up(job) == [1]
    transaction.commit()
    assert _taken(job, 2) == [2, 3]


def an_aborted_transaction_is_not_read_and_does_not_move_time(subject: SourceSubject) -> None:
    subject.send(numbered(1))
    subject.begin(numbered(2, minute=30)).abort()
    job = subject.reading()
    assert _taken(job, 1) == [1]
    assert job.reached.watermark == to_microseconds(NOON)
    subject.send(numbered(3, minute=1))
    assert _taken(job, 1) == [3]
    assert job.reached.watermark == to_microseconds(NOON) + 60_000_000


def a_compacted_range_gives_a_second_attempt_the_same_records(subject: SourceSubject) -> None:
    subject.send(numbered(*range(30)))
    job = subject.reading()
    _caught_up(job)
    subject.hold(job.reached)
    subject.send(numbered(*range(30, 60)))
    end = job.plan()
    assert end is not None
    first = _numbers(job, end)
    subject.send(numbered(*range(60, 90)))
    subject.compact()
    assert _numbers(subject.reading(job.reached), end) == first == list(range(30, 60))


def a_recreated_stream_is_refused(subject: SourceSubject) -> None:
    subject.send(numbered(*range(10)))
    job = subject.reading()
    _caught_up(job)
    subject.send(numbered(10))
    planned = job.plan()
    assert planned is not None
    subject.make_anew()
    subject.send(numbered(*range(20)))
    for refused in (subject.reading(job.reached).plan, lambda: subject.reading(job.reached).read(planned)):
        _lost(refused, "is not the one that job 'certified' has read")


def an_end_before_the_position_is_refused_with_the_numbers(subject: SourceSubject) -> None:
    subject.send(numbered(*range(10)))
    job = subject.reading()
    _caught_up(job)
    ahead = replace(job.reached, positions={STREAM: {0: job.reached.positions[STREAM][0] + 3}})
    _lost(subject.reading(ahead).plan, "and the job has read up to", "3 records gone")
    subject.send(numbered(10))
    assert _caught_up(job) == [10], "a job whose position is right goes on"


def partitions_that_are_added_are_read_from_their_first_record(subject: SourceSubject) -> None:
    subject.send(numbered(1))
    job = subject.reading()
    assert _caught_up(job) == [1]
    subject.add_partition()
    subject.send(numbered(2), partition=1)
    subject.send(numbered(3))
    assert sorted(_caught_up(job)) == [2, 3]
    subject.send(numbered(4), partition=1)
    assert _caught_up(subject.reading(job.reached)) == [4]


def records_that_retention_removed_are_counted_in_the_error(subject: SourceSubject) -> None:
    subject.send(numbered(*range(3)))
    job = subject.reading()
    _caught_up(job)
    subject.send(numbered(*range(3, 10)))
    end = job.plan()
    assert end is not None
    position: Position = subject.input().end()
    subject.expire(position[0] - 2)
    _lost(lambda: subject.reading(job.reached).read(end), "5 records from offset", "are gone")


def a_job_that_restarts_at_every_step_reads_each_record_once(subject: SourceSubject) -> None:
    taken, sent, offset = list[int](), count(), None
    for step in [*range(4)] * 3:
        subject.send(numbered(next(sent), next(sent)))
        job = subject.reading(offset)
        end = job.plan(rows=3)
        assert end is not None
        if step == 0:
            # It died before the offset was written: the epoch is planned again, and may be larger.
            subject.send(numbered(next(sent)))
            end = subject.reading(job.reached).plan(rows=3)
            assert end is not None
        found = _numbers(job, end)
        if step in (1, 2):
            # It died in the middle of the epoch: the same one is repeated, whatever arrived meanwhile.
            subject.send(numbered(next(sent)))
            job = subject.reading(job.reached)
            assert _numbers(job, end) == found
        taken += found
        job.commit(end)
        if step == 3:
            job = subject.reading(job.reached)
        offset = job.reached
    taken += _caught_up(subject.reading(offset))
    assert taken == list(range(next(sent)))


SOURCE_CASES: tuple[SourceCase, ...] = (
    a_range_gives_the_same_records_every_time,
    a_read_that_is_broken_off_can_be_repeated,
    an_epoch_reads_about_as_many_records_as_its_bound,
    an_open_transaction_is_read_when_it_is_committed_and_so_are_later_records,
    an_aborted_transaction_is_not_read_and_does_not_move_time,
    a_compacted_range_gives_a_second_attempt_the_same_records,
    a_recreated_stream_is_refused,
    an_end_before_the_position_is_refused_with_the_numbers,
    partitions_that_are_added_are_read_from_their_first_record,
    records_that_retention_removed_are_counted_in_the_error,
    a_job_that_restarts_at_every_step_reads_each_record_once,
)


def _caught_up(job: InputReading) -> list[int]:
    """The numbers of all records that a job reads until there are no more."""
    found: list[int] = []
    while (end := job.plan()) is not None:
        found += _numbers(job, end)
        job.commit(end)
    return found


def _taken(job: InputReading, count: int) -> list[int]:
    """The same, as soon as there are enough: in some systems, readers see the end of a transaction a moment later."""
    found, deadline = _caught_up(job), time.monotonic() + _PATIENCE
    while len(found) < count and time.monotonic() < deadline:
        time.sleep(0.01)
        found += _caught_up(job)
    return found


def _numbers(job: InputReading, end: EpochPlan) -> list[int]:
    return [n for batch in job.read(end).get(STREAM, []) for n in batch.column("n").to_pylist()]


def _rows(batches: Iterable[pa.RecordBatch]) -> list[tuple[int, int]]:
    found = [batch.to_pydict() for batch in batches]
    return [pair for part in found for pair in zip(part["_offset"], part["n"], strict=True)]


def _lost(act: Callable[[], object], *words: str) -> None:
    error = _error(act)
    assert error is not None, "what is lost was not noticed"
    assert all(word in str(error) for word in words), f"{error} does not say {words}"
    assert error.hint


def _error(act: Callable[[], object]) -> InputLost | None:
    try:
        act()
    except InputLost as error:
        return error
    return None
