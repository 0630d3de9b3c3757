"""A job that is killed at any step of an epoch, and gone on with, has done everything exactly once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from redis import Redis

import headrace as hr
from headrace.core.columns.schema import TIMESTAMP, schema
from headrace.jobs.directory import JobDirectory
from headrace.log.errors import UnknownTopic
from headrace.ops.servers.kafka import KafkaServer
from headrace.ops.servers.opensearch import OpenSearchServer
from headrace.ops.servers.postgres import PostgresServer
from headrace.ops.servers.redis import RedisServer
from headrace.testing.faults import FAILPOINTS, recorded
from tests.support.marked import MARK, freeze, kill, processes_of, stop, wait_until_gone, wake
from tests.system.test_search_sinks import asked

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RECORDS, ROWS_PER_EPOCH, URLS = 15_000, 750, 50
# Of which failpoints this job passes all.
AREAS = ("job", "source", "state", "sink")
APP = """
import headrace as hr

app = hr.App("pageviews", home={home!r})
views = app.stream("page_views", schema="url string, number bigint, at timestamp", key="url", time="at", watermark=hr.bounded("1 minute"))
per_minute = views.window(hr.tumbling("1 minute"), by="url").agg(views="count(*)", total="sum(number)")
app.view("per_minute", per_minute)
app.view("per_url", views.group("url", ttl=None).agg(views="count(*)", last="max(number)"))
# Sums that rise and fall, so that those who lead change, and others come forth from far behind.
scores = views.with_columns(player="number % 301", points="(number * 7919) % 1013 - 500").group("player", ttl=None).agg(score="sum(points)")
app.view("best", scores.top(3, by="score"))
app.view("each", views.to_table(key="number"))  # large: its state is in files
app.view("per_hour", per_minute.window(hr.tumbling("1 hour")).agg(views="sum(views)"))
app.sink(views.where("soundex(url) is not null and number % 2 = 0"), hr.log("even"))  # Spark evaluates soundex
app.sink(views.where("number % 2 = 1"), hr.postgres("odd", dsn={dsn!r}), name="odd")
per_url = views.group("url", ttl=None).agg(views="count(*)", last="max(number)")
app.sink(per_url, hr.postgres("per_url", dsn={dsn!r}))
app.sink(per_url, hr.redis("per_url", url={url!r}))
app.sink(per_url, hr.delta({lake!r} + "/delta"))
app.sink(per_url, hr.iceberg("shop.per_url", warehouse={lake!r} + "/iceberg"))
app.sink(per_url, hr.search({search!r}, index="per_url"))
app.sink(per_url, hr.search({lake!r} + "/index"))
app.sink(views.where("number % 5 = 0"), hr.parquet({lake!r} + "/files", roll="1 hour"))
app.sink(views.where("number % 3 = 0"), hr.kafka("thirds", servers={servers!r}, key="url"))
"""
Probe = Callable[[], int]


@dataclass(frozen=True)
class Servers:
    """What the job writes to, besides its own log."""

    postgres: PostgresServer
    kafka: KafkaServer
    redis: RedisServer
    opensearch: OpenSearchServer


class Job:
    """An app in a file, with records in the log that wait for it, and the commands that run it."""

    def __init__(self, directory: Path, servers: Servers) -> None:
        self.file = directory / "app.py"
        self.home = directory / "home"
        self.command = [sys.executable, "-m", "headrace", "run", str(self.file)]
        self.passed = directory / "passed"
        self.servers = servers
        self.thirds = hr.kafka("thirds", servers=servers.kafka.bootstrap).input(schema("url string, number bigint"), None, "test")
        self.lake = directory / "lake"
        places = {
            "lake": str(self.lake),
            "search": servers.opensearch.url,
            "dsn": servers.postgres.dsn,
            "url": servers.redis.url,
            "servers": servers.kafka.bootstrap,
        }
        self.file.write_text(APP.format(home=str(self.home), **places))
        names: dict[str, hr.App] = {}
        exec(self.file.read_text(), names)
        self.app = names["app"]
        random = Random(7)
        # Up to fifty seconds out of order, within the bound: nothing is late, so the result is one and the same however it is cut.
        self.records = [(f"/{random.randrange(URLS)}", n, NOON + timedelta(seconds=n / 20 - random.random() * 50)) for n in range(RECORDS)]
        self._send(self.records[:-ROWS_PER_EPOCH])

    def send_the_rest(self) -> None:
        """The records of one more epoch, for a job that may have come to the end of the others."""
        self._send(self.records[-ROWS_PER_EPOCH:])

    def _send(self, rows: list[tuple[str, int, datetime]]) -> None:
        table = pa.table(
            {"url": [row[0] for row in rows], "number": [row[1] for row in rows], "at": pa.array([row[2] for row in rows], TIMESTAMP)}
        )
        with self.app.log.producer(acks="all") as producer:
            producer.send_table("page_views", table)

    @contextmanager
    def running(self, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
        run = uuid.uuid4().hex
        environment = {
            **os.environ,
            MARK: run,
            "HEADRACE_FAILPOINTS": f"*=record({self.passed})",
        }
        command = [*self.command, "--rows-per-epoch", str(ROWS_PER_EPOCH), *options]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
            try:
                yield process, run
            finally:
                kill(run)

    def probes(self) -> dict[str, Probe]:
        """What moves while an epoch is written: what its sinks hold, then its accounting."""
        return {
            "rows in a database": lambda: self.select("SELECT coalesce(sum(epoch), 0) FROM headrace_epochs")[0][0],
            "records in Kafka": self._end_of_thirds,
            "accounting written": lambda: self._end("pageviews.accounting"),
        }

    def select(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.servers.postgres.dsn) as connection:
            try:
                return connection.execute(statement).fetchall()  # type: ignore[arg-type]
            except psycopg.errors.UndefinedTable:
                return [(0,)]

    def _end_of_thirds(self) -> int:
        try:
            return sum(self.thirds.end().values())
        except hr.ConnectorError:
            return 0

    def _end(self, topic: str) -> int:
        try:
            return sum(partition["end"] for partition in self.app.log.describe(topic)["partitions"])
        except UnknownTopic:
            return 0


def _wait_for_moves(probe: Probe, moves: int, process: subprocess.Popen[bytes], begin: Callable[[], None] = lambda: None) -> None:
    last, deadline = probe(), time.monotonic() + 240
    begin()
    while moves:
        assert process.poll() is None, (process.stderr.read() if process.stderr else b"").decode()
        assert time.monotonic() < deadline
        time.sleep(0.005)
        now = probe()
        moves -= now != last
        last = now


@pytest.mark.timeout(600)  # four starts of Spark
def test_a_job_killed_at_every_step_of_an_epoch_does_everything_once(
    tmp_path: Path, postgres: PostgresServer, kafka: KafkaServer, redis: RedisServer, opensearch: OpenSearchServer
) -> None:
    job = Job(tmp_path, Servers(postgres, kafka, redis, opensearch))
    in_database, in_kafka, accounted = job.probes().values()
    with job.running() as (first, left):
        _wait_for_moves(in_database, 3, first)
        # Spark and its workers stand still, perhaps with a lock, while their driver dies: the next run ends them.
        stop(left, but=first.pid)
        first.kill()
        with job.running() as (driver, replaced):
            _wait_for_moves(in_kafka, 2, driver)
            assert processes_of(left) == {}
            _refuse_a_second_driver(job, driver)
            # The same amid an epoch, as if on another machine: a new run goes on without them, and then they wake up.
            freeze(replaced, but=driver.pid)
            driver.kill()
            JobDirectory(job.home, "pageviews").forget_driver()
            with job.running() as (process, run):
                _wait_for_moves(accounted, 2, process)
                wake(replaced)
                wait_until_gone(replaced)
                _wait_for_moves(accounted, 1, process, job.send_the_rest)
                kill(run)
    # All that is left in one epoch, behind the one that was cut off.
    with job.running("--until", "end", "--rows-per-epoch", str(RECORDS)) as (process, run):
        out, err = process.communicate(timeout=280)
        assert process.returncode == 0, err.decode()
        wait_until_gone(run)
    _check(job, [json.loads(line) for line in out.splitlines()])


def _refuse_a_second_driver(job: Job, first: subprocess.Popen[bytes]) -> None:
    second = subprocess.run(job.command, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert f"job 'pageviews' is running already in process {first.pid}" in second.stderr


def _check(job: Job, accounting: list[dict[str, int | str]]) -> None:
    minutes = Counter((url, at.replace(second=0, microsecond=0)) for url, _, at in job.records)
    per_minute = {(row["url"], row["window_start"]): row["views"] for row in job.app.read("per_minute").to_pylist()}
    assert per_minute == minutes
    per_url = {row["url"]: (row["views"], row["last"]) for row in job.app.read("per_url").to_pylist()}
    assert per_url == {
        url: (count, max(n for other, n, _ in job.records if other == url))
        for url, count in Counter(url for url, _, _ in job.records).items()
    }
    hours = Counter(at.replace(minute=0, second=0, microsecond=0) for _, _, at in job.records)
    assert {row["window_start"]: row["views"] for row in job.app.read("per_hour").to_pylist()} == hours
    scores: Counter[int] = Counter()
    for _, number, _ in job.records:
        scores[number % 301] += (number * 7919) % 1013 - 500
    best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    assert sorted((row["player"], row["score"]) for row in job.app.read("best").to_pylist()) == sorted(best)
    each = {row["number"]: (row["url"], row["at"]) for row in job.app.read("each").to_pylist()}
    assert each == {number: (url, at) for url, number, at in job.records}
    even = job.app.log.read("even", columns=["number"])["number"].to_pylist()
    assert sorted(even) == list(range(0, RECORDS, 2))
    assert sorted(job.select("SELECT number FROM odd")) == [(number,) for number in range(1, RECORDS, 2)]
    assert {url: (views, last) for url, views, last in job.select("SELECT url, views, last FROM per_url")} == per_url
    rows = sorted((url, *row) for url, row in per_url.items())
    assert {name: table for name, table in _tables(job, list(per_url)).items() if table != rows} == {}
    files = list((job.lake / "files").glob("*.parquet"))
    fifths = [number for file in files for number in pq.read_table(file)["number"].to_pylist()]
    assert sorted(fifths) == list(range(0, RECORDS, 5))
    # Every run that was killed left its epochs to wait for the end of the last.
    assert len(files) == 1
    thirds = [
        row for partition, end in job.thirds.end().items() for batch in job.thirds.read(partition, 0, end) for row in batch.to_pylist()
    ]
    assert sorted(row["number"] for row in thirds) == list(range(0, RECORDS, 3))
    for url in per_url:
        assert (numbers := [row["number"] for row in thirds if row["url"] == url]) == sorted(numbers)
    counted = {row["step"]: row for row in accounting}
    assert counted["page_views"]["in"] == counted["page_views.window"]["in"] == counted["page_views.group"]["in"] == RECORDS
    assert counted["page_views.where"]["filtered"] == RECORDS // 2
    assert all(row["late"] == row["dead_letter"] == 0 for row in accounting)
    in_front = counted["page_views.with_columns.group.top.shards"]
    assert in_front["in"] == in_front["out"] + in_front["filtered"]
    assert in_front["filtered"] > 0
    epochs = job.app.epochs()
    assert {name: epoch for name, epoch in epochs.outputs.items() if epoch is None or not 0 < epoch <= epochs.job} == {}
    assert {name for name in FAILPOINTS if name.partition(".")[0] in AREAS} <= set(recorded(job.passed))


def _tables(job: Job, urls: list[str]) -> dict[str, list[tuple[str, int, int]]]:
    """The rows of each target that holds the latest one of each URL."""
    with Redis.from_url(job.servers.redis.url, decode_responses=True) as client:
        in_redis = [client.hgetall(f"{{per_url}}:{url}") for url in urls]
    warehouse = job.lake / "iceberg"
    with SqlCatalog("headrace", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=warehouse.as_uri()) as catalog:
        in_iceberg = catalog.load_table("shop.per_url").scan().to_arrow().to_pylist()
    node = job.servers.opensearch.url
    asked("POST", f"{node}/per_url/_refresh")
    found = {
        "redis": in_redis,
        "delta": DeltaTable(job.lake / "delta").to_pyarrow_table().to_pylist(),
        "iceberg": in_iceberg,
        "opensearch": hr.search(node, index="per_url").find("*", limit=1_000),
        "index": hr.search(job.lake / "index").find("*", limit=1_000),
    }
    return {name: sorted((row["url"], int(row["views"]), int(row["last"])) for row in rows) for name, rows in found.items()}
