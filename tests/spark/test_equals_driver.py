"""Spark and the test driver: a declared app on Spark, stopped and resumed, equals the test driver on the same records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.connectors.log.input import LogInput
from headrace.core.columns.schema import TIMESTAMP
from headrace.engine.accounting import COLUMNS as ACCOUNTING
from headrace.engine.program.compiler import compiled
from headrace.jobs.start.outputs import outputs_of
from headrace.log import Log
from headrace.plan.plan import View
from headrace.spark.job import Job, Packed
from headrace.spark.query import start
from headrace.testing.driver import TestDriver

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS = "url string, user string, at timestamp"


def app() -> Declaration:
    declared = Declaration("pageviews")
    views = declared.stream("page_views", schema=COLUMNS, key="url", time="at", watermark=bounded("10s"))
    per_url = views.where("url is not null").window(tumbling("1 minute"), by="url").agg(views="count(*)").emit(until="2 minutes")
    declared.view("per_url", per_url)
    declared.view("per_hour", per_url.window(tumbling("1 hour")).agg(views="sum(views)"))
    return declared


def batches() -> list[list[dict[str, Any]]]:
    first = [{"url": f"/{second % 3}", "user": "u", "at": NOON + timedelta(seconds=second)} for second in range(200)]
    bad = [{"url": None, "user": "x", "at": NOON}, {"url": "/a", "user": "no time", "at": None}]
    second = [{"url": "/0", "user": "u", "at": NOON + timedelta(seconds=100)}, {"url": "/0", "user": "late", "at": NOON}]
    return [first + bad, second]


class Home:
    """A log with the topics of the app, and the job that reads and writes them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = Log(directory / "log")
        self.plan = app().plan()
        self.views = [output for output in self.plan.outputs if isinstance(output, View)]
        moments = [pa.field(name, TIMESTAMP) for name in ("watermark", "window_start", "window_end")]
        late = pa.schema([*self.plan.sources[0].columns, pa.field("step", pa.string()), pa.field("reason", pa.string()), *moments])
        self.log.create_topic("page_views", partitions=2, schema=COLUMNS, key="url", time="at")
        self.log.create_topic("page_views.late", schema=late)
        self.log.create_topic("page_views.dead", schema="step string, reason string, partition int, offset bigint, record string")
        self.log.create_topic("pageviews.accounting", schema=ACCOUNTING)
        for view in self.views:
            self.log.create_topic(view.name, partitions=4, schema=view.node.columns, config={"cleanup.policy": "compact"})

    def send(self, rows: list[dict[str, Any]]) -> None:
        with self.log.producer() as producer:
            for row in rows:
                producer.send("page_views", row)

    def run(self, spark: SparkSession, until: str) -> None:
        source = self.plan.sources[0]
        inputs = {source.name: LogInput(self.directory / "log", source.name, tuple(source.columns.names), "at")}
        keys = {view.name: view.key for view in self.views}
        job = Job(
            id="pageviews-1", name="pageviews", packed=Packed(compiled(self.plan, 4)), inputs=inputs,
            watermarks={source.name: source.watermark}, outputs=outputs_of(self.log, self.plan), keys=keys, tasks=2, until=until,
        )  # fmt: skip
        start(spark, job, self.directory / "checkpoint").awaitTermination()

    def rows(self, view: str) -> list[dict[str, Any]]:
        (declared,) = [output for output in self.views if output.name == view]
        table = self.log.snapshot(view).table.select(declared.node.columns.names)
        return sorted(table.to_pylist(), key=lambda row: [str(row[name]) for name in declared.key])


def test_a_stopped_and_resumed_job_equals_the_test_driver(spark: SparkSession, tmp_path: Path) -> None:
    home = Home(tmp_path)
    with TestDriver(app(), partitions=2) as driver:
        for rows in batches():
            home.send(rows)
            home.run(spark, "caught-up")
            driver.send("page_views", rows)
            assert home.rows("per_url") == driver.rows("per_url")
        home.run(spark, "end")
        driver.end()
        assert home.rows("per_url") == driver.rows("per_url")
        assert home.rows("per_hour") == driver.rows("per_hour")
        names = ["url", "user", "at", "step", "reason", "watermark", "window_start", "window_end"]
        assert home.log.read("page_views.late", columns=names).to_pylist() == driver.late("page_views")
        assert [row["user"] for row in driver.late("page_views")] == ["late"]
        letters = home.log.read("page_views.dead", columns=["step", "reason", "record"]).to_pylist()
        assert letters == [{name: row[name] for name in ("step", "reason", "record")} for row in driver.dead_letters("page_views")]
        counted = home.log.read("pageviews.accounting").to_pylist()
        for count in driver.accounting():
            mine = [row for row in counted if row["step"] == count["step"]]
            assert {name: sum(row[name] for row in mine) for name in count if name != "step"} == {
                k: v for k, v in count.items() if k != "step"
            }
