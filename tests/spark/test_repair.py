"""A job goes on, exactly, from a checkpoint that was damaged and mended."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import headrace as hr
from headrace.checkpoint.shard_files import all_files
from headrace.jobs.directory import JobDirectory
from headrace.jobs.repair import repair
from tests.support.checkpoints import cut, empty, lose

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_job_goes_on_exactly_from_a_mended_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("clicks", home=tmp_path)
    clicks = app.stream("clicks", schema="n int, url string, at timestamp", time="at", watermark=hr.bounded("5 seconds"))
    app.view("per_minute", clicks.window(hr.tumbling("1 minute"), by="url").agg(clicks="count(*)"))
    app.view("per_url", clicks.group("url", ttl=None).agg(clicks="count(*)", last="max(n)"))
    app.sink(clicks, hr.log("kept"))
    _send(app, range(50))
    first = app.run(until="caught-up", rows_per_epoch=10)
    assert first.epoch == 5
    checkpoint = JobDirectory(tmp_path, "clicks").checkpoint
    empty(checkpoint / "commits" / "2")
    empty(checkpoint / "commits" / "3")
    lose(checkpoint / "commits" / "4")
    lose(checkpoint / "metadata")
    _send(app, range(50, 65))
    with pytest.raises(hr.JobError, match=r"the commit of epoch 3 is torn.*the commit of epoch 4 is torn"):
        app.run(until="end")
    assert len(repair(app.plan(), app.settings)) == 3
    # Epochs 3 to 5 are done again as they were, whatever is allowed now; their results are there already.
    assert app.run(until="caught-up", rows_per_epoch=1_000).epoch == 6
    for epoch in (5, 6):
        cut(next(file.path for file in all_files(checkpoint) if file.epoch == epoch and file.attempt is None))
    with pytest.raises(hr.JobError, match=r"the state as of epoch 6 references shards/[^/]+/\d+/[56]-.*, which is torn"):
        app.run(until="end")
    assert len(repair(app.plan(), app.settings)) == 1
    report = app.run(until="end")
    assert report.epoch == 6 + 1
    assert sorted(app.log.read("kept")["n"].to_pylist()) == list(range(65))
    minutes = Counter((f"/{n % 7}", _at(n).replace(second=0)) for n in range(65))
    assert {(row["url"], row["window_start"]): row["clicks"] for row in app.read("per_minute").to_pylist()} == minutes
    assert {row["url"]: (row["clicks"], row["last"]) for row in app.read("per_url").to_pylist()} == {
        f"/{rest}": (len(range(rest, 65, 7)), max(range(rest, 65, 7))) for rest in range(7)
    }
    assert {row["in"] for row in report.accounting if row["step"] in ("clicks", "clicks.window", "clicks.group")} == {65}


def _send(app: hr.App, numbers: range) -> None:
    with app.log.producer(acks="all") as producer:
        for n in numbers:
            producer.send("clicks", {"n": n, "url": f"/{n % 7}", "at": _at(n)})


def _at(n: int) -> datetime:
    return NOON + timedelta(seconds=4 * n)


def test_a_job_goes_on_exactly_from_before_a_torn_file_that_later_epochs_reference(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("texts", home=tmp_path)
    texts = app.stream("texts", schema="n int, text string", key="n")
    app.view("latest", texts.to_table(key="n"))
    for round_ in range(4):
        with app.log.producer(acks="all") as producer:
            for n in range(10 * round_, 10 * round_ + 20):
                producer.send("texts", {"n": n, "text": _long(n + round_)})
        app.run(until="caught-up")
    blobs = [file for file in all_files(JobDirectory(tmp_path, "texts").checkpoint) if file.attempt is None]
    assert {file.epoch for file in blobs} == {1, 2, 3, 4}
    cut(next(file.path for file in blobs if file.epoch == 3))
    with pytest.raises(hr.JobError, match=r"the state as of epoch 4 references shards/\S+/\d+/3-.*, which is torn"):
        app.run(until="end")
    (step,) = repair(app.plan(), app.settings)
    assert "the job goes back to epoch 2, whose state is whole" in step
    assert app.run(until="caught-up").epoch == 4
    expected = {n: _long(n + min(n // 10, 3)) for n in range(50)}
    assert {row["n"]: row["text"] for row in app.read("latest").to_pylist()} == expected
    app.run(until="end")


def _long(seed: int) -> str:
    return Random(seed).randbytes(2_000).hex()
