"""Streams that wait for tables: what the planner reads, and when."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pyarrow as pa
import pytest

from headrace.connectors.input import Ahead, Position, shared_out
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.planning.planner import PlannedStream, Planner
from headrace.operators.event_time.epoch_time import BEGINNING
from headrace.plan.watermarks import Bounded

SECOND = 1_000_000
NOON = 1_767_268_800 * SECOND


@dataclass
class Sent:
    """An input of one partition, with the event times of its records."""

    times: list[int] = field(default_factory=list)
    label: str = "records"

    def send(self, *seconds: int) -> None:
        self.times += [NOON + second * SECOND for second in seconds]

    def identity(self) -> str:
        return "1"

    def beginning(self) -> Position:
        return {0: 0}

    def earliest(self, partitions: Sequence[int]) -> Position:
        return dict.fromkeys(partitions, 0)

    def end(self) -> Position:
        return {0: len(self.times)}

    def ahead(self, start: Position, end: Position, rows: int | None, limit: int) -> Ahead:
        position = shared_out(start, end, rows)
        times = [time for time in self.times[start[0] : position[0]] if time <= limit]
        return Ahead(position, {0: max(times)} if times else {})

    def read(self, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
        raise AssertionError("no rule here learns from records")

    def done(self, position: Position) -> None:
        pass


class Windowless:
    """A program without windows."""

    def closing(self, moment: int) -> int:
        return moment

    def due(self, before: int, clock: int, taken_at: int) -> bool:
        return False


class Shop:
    """Orders that wait for users, in a job that is planned one epoch after the other."""

    def __init__(self, *, align: int | None = None, until: str | None = None) -> None:
        self.orders, self.users, self.now = Sent(), Sent(), NOON
        rule = Bounded(timedelta(0), idle=timedelta(minutes=1))
        streams = {"orders": PlannedStream(self.orders, rule), "users": PlannedStream(self.users, rule, align=align)}
        self.planner = Planner("shop", streams, Windowless(), {"orders": frozenset({"users"})}, until)
        self.plan = self.planner.first()

    def next(self, rows: int | None = None) -> tuple[int, int] | None:
        """How far orders and users are read after the next epoch; None if there is nothing to do. A new process plans each."""
        plan = self.planner.next(self.plan, self.now, rows)
        if plan is self.plan:
            return None
        self.plan = EpochPlan.from_json(json.loads(json.dumps(plan.to_json())))
        return self.plan.positions["orders"][0], self.plan.positions["users"][0]


def test_a_stream_is_not_read_before_its_table_is_where_it_was_when_the_job_started() -> None:
    shop = Shop()
    shop.orders.send(1, 2, 3)
    shop.users.send(*range(10))
    assert shop.next(rows=4) == (0, 4)
    shop.users.send(10, 11)
    assert shop.next(rows=4) == (0, 8)
    assert shop.plan.snapshots == {"users": {0: 10}}
    # The users that came after the job started are not waited for.
    assert shop.next(rows=4) == (0, 12)
    assert shop.plan.snapshots == {}
    assert shop.next(rows=4) == (3, 12)
    assert shop.next() is None


def test_a_table_without_rows_lets_nobody_wait_and_later_rows_do_not_either() -> None:
    shop = Shop()
    shop.orders.send(1)
    assert shop.next() == (1, 0)
    shop.users.send(1, 2)
    shop.orders.send(2)
    assert shop.next() == (2, 2)


def test_a_stream_that_waits_is_not_silent_and_holds_the_watermark() -> None:
    shop = Shop()
    shop.orders.send(1, 2)
    shop.users.send(5, 6, 7, 8)
    for _ in range(3):
        assert shop.next(rows=1) is not None
        shop.now += 3_600 * SECOND
        assert shop.plan.watermark == BEGINNING
    assert shop.next(rows=1) == (0, 4)
    assert shop.next() == (2, 4)
    assert shop.plan.watermark == NOON + 2 * SECOND


def test_a_table_that_is_read_side_by_side_with_the_stream_that_waits_for_it_is_read() -> None:
    shop = Shop(align=SECOND)
    shop.orders.send(1)
    shop.users.send(500, 1_000)
    assert shop.next() == (0, 2)
    assert shop.next() == (1, 2)


@pytest.mark.parametrize("until", ["caught-up", "flushed", "end"])
def test_a_run_over_what_is_there_does_not_end_while_a_stream_waits(until: str) -> None:
    shop = Shop(until=until)
    shop.orders.send(1, 2)
    shop.users.send(1, 2, 3)
    ends, read = shop.planner.ends(), []
    while (plan := shop.planner.next(shop.plan, shop.now, 2, ends)) is not shop.plan:
        shop.plan = plan
        read.append((plan.positions["orders"][0], plan.positions["users"][0]))
    assert read[:3] == [(0, 2), (0, 3), (2, 3)]
    assert bool(shop.plan.ended) == (until == "end")


def test_a_plan_that_is_repeated_waits_as_it_did() -> None:
    shop = Shop()
    shop.orders.send(1)
    shop.users.send(1, 2, 3)
    assert shop.next(rows=1) == (0, 1)
    planned = shop.plan
    shop.users.send(4, 5)
    first, second = (shop.planner.next(replace(planned), shop.now, 1) for _ in range(2))
    assert first == second
    assert first.snapshots == {"users": {0: 3}}
