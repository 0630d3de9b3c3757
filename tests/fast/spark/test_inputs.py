"""Topics whose records may be open, aborted, gone, or those of another topic, as the input of a job."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.core.clock import ManualClock, to_datetime
from headrace.core.errors import HeadraceError
from tests.support.in_process import InProcess

NOON = to_datetime(ManualClock().now())


class Shop:
    """An app over one topic that keeps each record, and counts those of each minute."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clock = ManualClock()
        self.app = hr.App("shop", home=home)
        orders = self.app.stream("orders", "n bigint, at timestamp", time="at", watermark=hr.bounded("0s"))
        self.app.sink(orders, hr.log("kept"))
        self.app.view("per_minute", orders.window(hr.tumbling("1 minute")).agg(orders="count(*)"))
        # Declares its topic.
        self.app.log.topic("orders")

    def row(self, n: int, minute: float = 0) -> dict[str, Any]:
        return {"n": n, "at": NOON + timedelta(minutes=minute)}

    def send(self, *numbers: int, minute: float = 0) -> None:
        with self.app.log.producer() as producer:
            for n in numbers:
                producer.send("orders", self.row(n, minute))

    def kept(self, job: InProcess) -> list[int]:
        return [row["n"] for row in job.driver.rows("orders.sink")]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_transaction_that_is_open_when_an_epoch_is_planned_is_taken_in_when_it_is_committed(shop: Shop) -> None:
    job = InProcess(shop.app, shop.clock)
    shop.send(1)
    with shop.app.log.producer(transactional_id="t") as producer:
        producer.begin_transaction()
        producer.send("orders", shop.row(2))
        producer.flush()
        shop.send(3)
        job.catch_up()
        assert shop.kept(job) == [1]
        producer.commit_transaction()
    job.catch_up()
    assert shop.kept(job) == [1, 2, 3]


def test_a_record_that_was_aborted_does_not_move_the_watermark(shop: Shop) -> None:
    job = InProcess(shop.app, shop.clock)
    shop.send(1)
    with shop.app.log.producer(transactional_id="t") as producer:
        producer.begin_transaction()
        producer.send("orders", shop.row(2, minute=3))
        producer.flush()
        producer.abort_transaction()
    job.catch_up()
    shop.send(3, minute=0)
    job.catch_up()
    assert shop.kept(job) == [1, 3]
    assert job.driver.late("orders") == []


def test_a_topic_that_was_made_anew_is_refused_by_name(shop: Shop) -> None:
    job = InProcess(shop.app, shop.clock)
    shop.send(*range(10))
    job.catch_up()
    topic = shop.app.log.topic("orders")
    shop.app.log.delete_topic("orders")
    shop.app.log.create_topic("orders", schema=topic.columns, time="at")
    shop.send(*range(4))
    later = InProcess(shop.app, shop.clock, reached=job.reached)
    with pytest.raises(HeadraceError, match="topic 'orders' is not the one") as refused:
        later.plan()
    assert topic.id in str(refused.value)
    assert "start the job from the beginning" in str(refused.value)


def test_an_epoch_that_is_repeated_is_refused_too_if_its_topic_was_made_anew(shop: Shop) -> None:
    job = InProcess(shop.app, shop.clock)
    shop.send(*range(10))
    end = job.plan()
    assert end is not None
    shop.app.log.delete_topic("orders")
    shop.app.log.create_topic("orders", schema="n bigint, at timestamp", time="at")
    shop.send(*range(20))
    with pytest.raises(HeadraceError, match="topic 'orders' is not the one"):
        InProcess(shop.app, shop.clock, reached=job.reached).read(end)


def test_an_end_below_the_position_is_refused_with_the_number_of_records_and_nothing_is_read_twice(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = InProcess(shop.app, shop.clock)
    shop.send(*range(10))
    job.catch_up()
    source = job.job.inputs["orders"]
    with monkeypatch.context() as patch:
        patch.setattr(type(source), "end", lambda self: {0: 7})
        with pytest.raises(HeadraceError, match="partition 0 of topic 'orders' ends at offset 7, and the job has read up to 10: 3 records"):
            job.plan()
    shop.send(10)
    job.catch_up()
    assert shop.kept(job) == list(range(11))


def test_records_that_retention_removed_before_they_were_read_are_counted_in_the_error(shop: Shop) -> None:
    job = InProcess(shop.app, shop.clock)
    shop.send(*range(3))
    job.catch_up()
    shop.send(*range(3, 10))
    shop.app.log.delete_records("orders", 0, before=8)
    with pytest.raises(HeadraceError, match="5 records from offset 3 to 7 of partition 0 of topic 'orders' are gone") as refused:
        job.epoch()
    assert "retention" in str(refused.value)


def test_records_that_retention_removed_after_an_epoch_was_planned_are_counted_in_the_error(shop: Shop) -> None:
    job = InProcess(shop.app, shop.clock)
    shop.send(*range(10))
    end = job.plan()
    assert end is not None
    shop.app.log.delete_records("orders", 0, before=4)
    with pytest.raises(HeadraceError, match="4 records from offset 0 to 3 of partition 0 of topic 'orders' are gone"):
        job.read(end)


def test_a_partition_that_is_missing_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = InProcess(shop.app, shop.clock)
    shop.app.log.alter_topic("orders", partitions=2)
    shop.send(*range(4))
    job.catch_up()
    monkeypatch.setattr(type(job.job.inputs["orders"]), "end", lambda self: {0: 4})
    with pytest.raises(HeadraceError, match="topic 'orders' has no partition 1"):
        job.plan()
