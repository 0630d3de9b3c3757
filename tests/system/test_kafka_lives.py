"""Starts and stops of a job that reads Kafka, and a topic that is missing."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

import headrace as hr
from headrace.jobs.directory import JobDirectory
from headrace.ops.servers.kafka import KafkaServer
from tests.support.lives import Life
from tests.system.test_kafka_source import Topic

APP = """
import headrace as hr

app = hr.App("lives", home={home!r})
clicks = app.stream("clicks", schema="url string", source=hr.kafka({topic!r}, servers={servers!r}, patience="10 seconds"))
app.view("per_url", clicks.group("url", ttl=None).agg(n="count(*)"))
"""
SEED = 14
STOPS = ["caught-up"] * 4 + ["SIGINT"] * 3 + ["SIGTERM"] * 2 + ["SIGKILL"]


def app_file(folder: Path, topic: str, kafka: KafkaServer) -> Path:
    file = folder / "app.py"
    file.write_text(APP.format(home=str(folder / "home"), topic=topic, servers=kafka.bootstrap))
    return file


@pytest.mark.timeout(600)  # a start of Spark besides the warm one
@pytest.mark.usefixtures("spark")
def test_a_job_on_kafka_started_and_stopped_ten_times_is_never_damaged_and_counts_every_record_once(
    tmp_path: Path, kafka: KafkaServer
) -> None:
    topic = Topic(kafka, f"lives-{uuid.uuid4().hex}").create()

    def send(urls: Sequence[str]) -> None:
        topic.send(*(json.dumps({"url": url}).encode() for url in urls))

    life = Life(app_file(tmp_path, topic.name, kafka), send, SEED)
    life.live(Random(SEED).sample(STOPS, len(STOPS)))


def test_a_topic_that_is_missing_is_told_before_spark_starts_and_the_job_is_not_fixed(tmp_path: Path, kafka: KafkaServer) -> None:
    names: dict[str, hr.App] = {}
    exec(app_file(tmp_path, f"missing-{uuid.uuid4().hex}", kafka).read_text(), names)
    with pytest.raises(hr.ConnectorError, match="there is no topic 'missing-"):
        names["app"].run(until="caught-up")
    place = JobDirectory(tmp_path / "home", "lives")
    assert place.record() is None
    # Spark writes to it as soon as it starts.
    assert not place.spark_log.exists()
