"""A job whose checkpoint has no more room stops, and goes on exactly when there is room again."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headrace as hr
from headrace.jobs.directory import JobDirectory

RECORDS = 400


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose jobs have a small file system of their own."""
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(jobs)], check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"mounting a small file system needs root: {mounted.stderr.strip()}")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "--lazy", str(jobs)], check=True)


def test_a_job_stops_when_its_checkpoint_has_no_room_and_goes_on_when_it_has(spark: SparkSession, home: Path) -> None:
    app = hr.App("clicks", home=home)
    clicks = app.stream("clicks", schema="n int, url string")
    app.view("per_url", clicks.group("url", ttl=None).agg(clicks="count(*)", total="sum(n)"))
    app.sink(clicks, hr.log("kept"))
    with app.log.producer(acks="all") as producer:
        for n in range(RECORDS):
            producer.send("clicks", {"n": n, "url": f"/{n % 5}"})
    filled = threading.Thread(target=_fill_when_at_work, args=(JobDirectory(home, "clicks"),))
    filled.start()
    with pytest.raises(hr.JobError, match="job 'clicks' stopped"):
        app.run(until="end", rows_per_epoch=5)
    filled.join()
    (home / "jobs" / "filling").unlink()
    report = app.run(until="end")
    assert sorted(app.log.read("kept")["n"].to_pylist()) == list(range(RECORDS))
    assert {row["url"]: (row["clicks"], row["total"]) for row in app.read("per_url").to_pylist()} == {
        f"/{rest}": (RECORDS // 5, sum(range(rest, RECORDS, 5))) for rest in range(5)
    }
    assert {row["in"] for row in report.accounting if row["step"] in ("clicks", "clicks.group")} == {RECORDS}


def test_a_job_that_cannot_write_the_records_of_its_run_says_which_job_stopped(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("clicks", home=tmp_path)
    app.view("per_url", app.stream("clicks", schema="n int, url string").group("url", ttl=None).agg(clicks="count(*)"))
    with app.log.producer(acks="all") as producer:
        producer.send("clicks", {"n": 1, "url": "/"})
    in_the_way = JobDirectory(tmp_path, "clicks").path / "phases.ndjson"
    in_the_way.mkdir(parents=True)
    with pytest.raises(hr.JobError, match=r"job 'clicks' stopped: .*phases\.ndjson"):
        app.run(until="end")
    in_the_way.rmdir()
    app.run(until="end")
    assert [row["clicks"] for row in app.read("per_url").to_pylist()] == [1]


def _fill_when_at_work(place: JobDirectory) -> None:
    """Take every byte of the job's disk once some epochs are done."""
    pause = threading.Event()
    while not (place.checkpoint / "commits" / "2").exists():
        pause.wait(0.02)
    size = 1 << 20
    with (place.path.parent / "filling").open("ab", buffering=0) as file:
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2
