"""The time of a job that reads topics of a real broker: learned bounds, and streams of different speed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import headrace as hr
from headrace.connectors.kafka import client
from headrace.jobs.directory import Record
from headrace.jobs.start.assembly import job_of
from headrace.operators.event_time.watermark import StreamTime
from headrace.ops.servers.kafka import KafkaServer
from headrace.spark.source import JobReader
from tests.system.test_kafka_source import COLUMNS, MINUTE, Topic

RECORDS, ROWS = 120, 40
SECOND = MINUTE // 60
# One record in four is a minute behind the latest, one in twenty half an hour.
TIMES = [3_600 + 30 * number - (1_800 if number % 20 == 19 else 90 if number % 4 == 2 else 0) for number in range(RECORDS)]


@pytest.fixture
def app(kafka: KafkaServer, tmp_path: Path) -> Iterator[hr.App]:
    """An app over a stream that is slow to read, and one that is quick and waits for it."""
    fax, web = Topic(kafka, "fax").create(), Topic(kafka, "web").create(2)
    fax.times(*(time / 60 for time in TIMES))
    for partition in (0, 1):
        web.times(*range(60, 120), partition=partition)
    declared = hr.App("two-speeds", home=tmp_path)
    slow = declared.stream(
        "slow", COLUMNS, time="at", watermark=hr.loss_budget(0.1, max="1 hour", idle="1 minute"),
        source=hr.kafka("fax", servers=kafka.bootstrap, rows_per_epoch=ROWS),
    )  # fmt: skip
    quick = declared.stream(
        "quick", COLUMNS, time="at", watermark=hr.bounded("0s", idle="1 minute"), align="10 minutes",
        source=hr.kafka("web", servers=kafka.bootstrap),
    )  # fmt: skip
    declared.view("all", slow.union(quick).window(hr.tumbling("1 minute")).agg(records="count(*)"))
    yield declared
    client.forget()


def planner(app: hr.App) -> JobReader:
    reader = JobReader(job_of(app.plan(), Record("two-speeds-1", 2, 1, ""), app.log, until="end"))
    reader.prepareForTriggerAvailableNow()
    return reader


def planned(reader: JobReader) -> list[dict[str, Any]]:
    """The offsets of all epochs, as they come back from a checkpoint."""
    offsets = [reader.initialOffset()]
    while (end := reader.latestOffset(offsets[-1], ReadAllAvailable()))["epoch"] > offsets[-1]["epoch"]:
        offsets.append(json.loads(json.dumps(end)))
    return offsets


def test_a_quick_topic_waits_for_a_slow_one_whose_bound_is_learned_from_its_records(app: hr.App) -> None:
    offsets = planned(planner(app))
    assert offsets[-1]["positions"] == {"slow": {"0": RECORDS}, "quick": {"0": 60, "1": 60}}
    for before, after in itertools.pairwise(offsets):
        reached = before["positions"]["slow"]["0"]
        read = max(after["positions"]["quick"].values())
        # The record of the slow one that comes next tells how far it is.
        assert reached == RECORDS or 60 * (60 + read - 1) <= max(TIMES[: reached + 1]) + 600
    rule = next(source.watermark for source in app.plan().sources if source.name == "slow")
    bounds = [StreamTime.from_json(offset["progress"]["slow"]).bounds(rule)[0] / SECOND for offset in offsets[1:]]
    assert all(60 <= bound < 67 for bound in bounds)
    watermarks = [offset["watermark"] for offset in offsets[1:]]
    assert watermarks == sorted(watermarks)
    # An epoch that is planned once more, by another process, comes to the same.
    again = planner(app).latestOffset(offsets[2], ReadAllAvailable())
    assert [again[name] for name in ("positions", "watermark")] == [offsets[3][name] for name in ("positions", "watermark")]


def test_a_time_that_is_computed_is_found_at_the_end_of_a_topic(kafka: KafkaServer, tmp_path: Path) -> None:
    topic, noon = Topic(kafka, "computed").create(), 1_767_268_800
    topic.send(*(json.dumps({"n": 1, "meta": {"ts": noon + number}}).encode() for number in range(2_000)))
    topic.send(b"oops", b'{"n": 1}', b'{"n": 1, "meta": {"ts": "noon"}}', json.dumps({"n": 1, "meta": {"ts": 2**62}}).encode())
    declared = hr.App("computed", home=tmp_path)
    clicks = declared.stream(
        "clicks", "n bigint, meta struct<ts:bigint>", time="timestamp_seconds(meta.ts)", watermark=hr.perfect(max_ahead="3650 days"),
        source=hr.kafka("computed", servers=kafka.bootstrap),
    )  # fmt: skip
    declared.view("all", clicks.window(hr.tumbling("1 minute")).agg(records="count(*)"))
    with pytest.warns(hr.PlanWarning, match="accepts times"):
        offsets = planned(planner(declared))
    assert [offset["watermark"] for offset in offsets[1:2]] == [(noon + 1_999) * SECOND]
    client.forget()
