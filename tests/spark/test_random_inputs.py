"""A few of the random runs without a JVM, on Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from tests.support.random_inputs import NOON, TOPICS, World

LOST = {"n": 0, "item": "i0", "text": "", "at": NOON}


@pytest.mark.usefixtures("spark")
def test_a_job_on_spark_takes_in_each_committed_record_once_and_refuses_a_topic_that_lost_records_or_was_made_anew(tmp_path: Path) -> None:
    world = World(tmp_path, seed=3)
    for until in ("caught-up", "caught-up", "end"):
        for _ in range(25):
            world.disturb()
        if until == "end":
            world.settle()
        world.app.run(until=until, rows_per_epoch=40)
    assert Counter(_numbers(world, "orders_kept")) == world.expected("orders")
    # Between runs nothing is held: what was replaced before a job read it may be gone, and what is there was read.
    assert Counter(_numbers(world, "prices_kept")) <= world.expected("prices")
    assert {*_numbers(world, "prices")} <= {*_numbers(world, "prices_kept")}
    for topic in TOPICS:
        counted = {row["window_start"]: row["records"] for row in world.app.read(f"{topic}_per_minute").to_pylist()}
        assert counted == Counter(at.replace(second=0) for at in world.log.read(f"{topic}_kept")["at"].to_pylist())
        assert world.log.read(f"{topic}.late").num_rows == 0
    assert not world.log.holds("random")
    for place, partition in enumerate(world.log.describe("orders")["partitions"]):
        world.log.append_epoch("orders", pa.Table.from_pylist([LOST] * 3), writer="lost", epoch=place + 1, partition=place)
        world.log.delete_records("orders", place, before=partition["end"] + 2)
    with pytest.raises(hr.JobError, match=r"2 records from offset \d+ to \d+ of partition \d of topic 'orders' are gone"):
        world.app.run(until="caught-up")
    declared = world.log.topic("orders")
    world.log.delete_topic("orders")
    world.log.create_topic("orders", schema=declared.columns, key="item", time="at")
    with pytest.raises(hr.JobError, match="topic 'orders' is not the one that job 'random' has read"):
        world.app.run(until="caught-up")


def _numbers(world: World, topic: str) -> list[int]:
    found: list[int] = world.log.read(topic)["n"].to_pylist()
    return found
