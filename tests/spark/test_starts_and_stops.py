"""Twenty starts and stops of a job in a random order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tests.support.examples import soaked
from tests.support.lives import Life

APP = """
import headrace as hr

app = hr.App("lives", home={home!r})
clicks = app.stream("clicks", schema="url string", partitions=2)
app.view("per_url", clicks.group("url", ttl=None).agg(n="count(*)"))
"""
SEED = 14
# A run that is killed has a Spark of its own, which takes as long to start as all others together.
STOPS = ["caught-up"] * 7 + ["SIGINT"] * 6 + ["SIGTERM"] * soaked(5, 6) + ["SIGKILL"] * soaked(2, 1)


@pytest.mark.timeout(600)  # a start of Spark besides the warm one, two in the long form
@pytest.mark.usefixtures("spark")
def test_a_job_started_and_stopped_twenty_times_is_never_damaged_and_counts_every_record_once(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(APP.format(home=str(tmp_path / "home")))

    def send(urls: Sequence[str]) -> None:
        with life.app.log.producer(acks="all") as producer:
            for url in urls:
                producer.send("clicks", {"url": url})

    life = Life(file, send, SEED)
    life.live(Random(SEED).sample(STOPS, len(STOPS)))
