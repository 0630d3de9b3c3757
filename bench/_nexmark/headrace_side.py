"""Headrace's side of Nexmark: the queries as apps, on the log of each amount of events."""

from __future__ import annotations

import itertools
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import polars as pl
from _processes import cpu_seconds
from pyspark.sql import SparkSession

import headrace as hr
from headrace.core.remarks import PlanWarning
from headrace.core.settings import Settings
from headrace.jobs.directory import Record
from headrace.jobs.start.assembly import Bounds, job_of
from headrace.jobs.start.outputs import create_outputs
from headrace.spark import query as spark_query

from .events import Events
from .nowhere import Nowhere
from .queries import QUERIES
from .sides import Inputs, Spent
from .site import COLUMNS, KEYS, Site, side_rows


class Headrace:
    """Runs the apps in a Spark that is running already, `rows` records an epoch."""

    name = "headrace"

    def __init__(self, spark: SparkSession, settings: Settings, cores: int, inputs: Inputs, rows: int) -> None:
        self._spark, self._settings, self._cores, self._inputs, self._rows = spark, settings, cores, inputs, rows
        self._numbers = itertools.count()
        self._events: dict[str, Events] = {}

    def load(self, amount: str, events: Events) -> None:
        """Append events to topics of the log of an amount."""
        log = self._app(amount).log
        self._events[amount] = events
        for name, columns in COLUMNS.items():
            log.create_topic(name, partitions=self._cores, schema=columns, key=KEYS[name], time="dateTime" if name != "side" else None)
        with log.producer(acks="1") as producer:
            producer.send_table("side", side_rows())
            for batch in events.batches(self._rows):
                for name, table in batch.items():
                    producer.send_table(name, table)

    def answer(self, query: str) -> pl.DataFrame:
        app, out = self._app("few"), f"out-{query}"
        QUERIES[query].output(app, self._site(app, "few"), out)
        self._run(app, query)
        table = app.log.read(out, columns=app.log.topic(out).columns.names) if QUERIES[query].facts else app.read(out)
        found = pl.from_arrow(table)
        assert isinstance(found, pl.DataFrame)
        app.log.delete_topic(out)
        return found

    def spend(self, query: str, amount: str) -> Spent:
        app = self._app(amount)
        app.sink(QUERIES[query].declare(self._site(app, amount)), Nowhere(), name="nowhere")
        return self._run(app, query)

    def _app(self, amount: str) -> hr.App:
        return hr.App(f"nexmark-{next(self._numbers)}", settings=replace(self._settings, home=self._inputs.all[amount]))

    def _site(self, app: hr.App, amount: str) -> Site:
        return Site(app, longest_auction=self._events[amount].longest_auction, partitions=self._cores)

    def _run(self, app: hr.App, query: str) -> Spent:
        with warnings.catch_warnings():
            # Windows by the wall clock are what one query asks for.
            warnings.simplefilter("ignore", PlanWarning)
            plan = app.plan()
        create_outputs(app.log, plan, self._cores)
        record = Record(app.name, 2 * self._cores, self._cores, "")
        before, began = cpu_seconds(), time.perf_counter()
        with tempfile.TemporaryDirectory() as checkpoint:
            job = job_of(plan, record, app.log, until="end", bounds=Bounds(self._rows * QUERIES[query].files_an_epoch))
            spark_query.start(self._spark, job, Path(checkpoint)).awaitTermination()
        return Spent(cpu_seconds() - before, time.perf_counter() - began)
