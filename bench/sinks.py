"""Kafka and PostgreSQL, read and written exactly once, against Spark's own connectors and a bare COPY: same Spark, same data, in turn.

Results are compared before a figure counts. An epoch's time is Spark's own measure of it (triggerExecution); the first ones of each run, in
which processes start, do not count. Spark's Kafka sink is at least once; ours is one transaction a task and epoch.

usage: python bench/sinks.py [--quick]
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import psycopg
from _comparison import HERE, Comparison, Targets, perform
from _harness import Measure, at_least, interleave, options
from _kafka_topics import SparkKafka, Topics
from _payments import COLUMNS, Payments, append
from _runs import Run, epoch
from _spark_job import records, tumbling

import headrace as hr
from headrace.connectors.output import Changes, Writer, table_of
from headrace.connectors.postgres.columns import as_csv
from headrace.core.columns.schema import schema
from headrace.core.files.jars import fetch_jars, read_lock
from headrace.ops.servers.kafka import KafkaServer
from headrace.ops.servers.postgres import PostgresServer

_TABLE = schema("card string, n bigint, total double, at timestamp")
_MERGE = """
MERGE INTO peer USING stage ON peer.card = stage.card
WHEN MATCHED THEN UPDATE SET n = stage.n, total = stage.total, at = stage.at
WHEN NOT MATCHED THEN INSERT VALUES (stage.card, stage.n, stage.total, stage.at)
"""
_numbers = itertools.count()


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    pairs: int
    rows: int
    """Records an epoch."""
    epochs: int
    upserts: int
    keys: int


FULL = Size(3, 400_000, 8, 100_000, 1_000_000)
QUICK = Size(1, 100_000, 5, 100_000, 300_000)


class Sinks(Comparison[Size]):
    """Each measure of a connector."""

    def kafka_sink(self, name: str, topics: Topics) -> Measure:
        """Payments of the log to a topic, as JSON."""
        size, measure = self.size, Measure(name, "rows/s")
        append(self.log, "payments", Payments(size.rows * size.epochs).tables())
        total = float(_payments(size.rows * size.epochs).get_column("amount").sum())
        peer = SparkKafka(self.peer.spark, self.log, topics.servers)

        def run(write: bool) -> None:
            topic = topics.create()
            made = self._written(topic, topics.servers) if write else peer.write("payments", topic, size.rows)
            (measure.ours if write else measure.peer).append(made.rate(2))
            count, amount = topics.committed(topic)
            self._claim((count, amount) == (size.rows * size.epochs, total), f"{name}: {count:,} records are in the topic, each once")
            topics.delete(topic)

        interleave(size.pairs, lambda: run(write=True), lambda: run(write=False))
        self.log.delete_topic("payments")
        return self._shown(measure)

    def kafka_source(self, name: str, topics: Topics) -> Measure:
        """JSON of a topic, counted by card and minute."""
        size, measure = self.size, Measure(name, "rows/s")
        topic = topics.fill(size.rows * size.epochs)
        peer, found = SparkKafka(self.peer.spark, self.log, topics.servers), list[pl.DataFrame]()

        def ours() -> None:
            run = self._counted(topic, topics.servers)
            measure.ours.append(run.rate(2))
            found.append(run.result)

        def theirs() -> None:
            run = peer.count(topic, size.rows)
            measure.peer.append(run.rate(2))
            found.append(run.result)

        interleave(size.pairs, ours, theirs)
        # The last windows of each side are open or not as its watermark says; what both have is the same.
        common = [one.select("card", "window_start", "n", "total").sort("card", "window_start") for one in found]
        end = min(one.get_column("window_start").max() for one in common)  # type: ignore[type-var]
        closed = [one.filter(pl.col("window_start") < end) for one in common]
        same = closed[0].height > 0 and all(one.equals(closed[0]) for one in closed)
        self._claim(same, f"{name}: {closed[0].height:,} rows, the same on both sides")
        topics.delete(topic)
        return self._shown(measure)

    def postgres(self, name: str) -> Measure:
        """Upserts of an epoch, against COPY of CSV that is there already and one MERGE."""
        size, measure = self.size, Measure(name, "rows/s")
        random, numbers = np.random.default_rng(3), itertools.count(1)
        with PostgresServer() as server, psycopg.connect(server.dsn, autocommit=True) as connection:
            output = hr.postgres("ours", dsn=server.dsn).output(_TABLE, ("card",))
            output.prepare(1)
            connection.execute("CREATE TABLE peer (card text PRIMARY KEY, n bigint, total double precision, at timestamptz)")
            connection.execute("CREATE TEMPORARY TABLE stage (LIKE peer) ON COMMIT DELETE ROWS")
            for _ in range(2 + 3 * size.pairs):
                frame, number = _changed(random, size), next(numbers)
                text = bytes(as_csv(table_of(frame, _TABLE)))
                began = time.perf_counter()
                with connection.transaction():
                    with connection.cursor().copy("COPY stage FROM STDIN (FORMAT csv)") as copy:
                        copy.write(text)
                    connection.execute(_MERGE)
                between = time.perf_counter()
                output.write(Writer("job", "sink"), number, Changes(frame), _no_letters)
                ended = time.perf_counter()
                if number > 2:
                    measure.peer.append(size.upserts / (between - began))
                    measure.ours.append(size.upserts / (ended - between))
            other = connection.execute("SELECT count(*) FROM (TABLE peer EXCEPT TABLE ours) AS other").fetchone()
        self._claim(other == (0,), f"{name}: both tables are the same")
        return self._shown(measure)

    def _written(self, topic: str, servers: str) -> Run:
        app = self._app()
        stream = app.stream("payments", schema=COLUMNS, key="card", time="at", watermark=hr.bounded("10 seconds", idle="1 hour"))
        app.sink(stream, hr.kafka(topic, servers=servers, key="card"), name="out")
        return self._finished(app, pl.DataFrame)

    def _counted(self, topic: str, servers: str) -> Run:
        app = self._app()
        source = hr.kafka(topic, servers=servers)
        stream = app.stream("json", schema=COLUMNS, time="at", watermark=hr.bounded("10 seconds", idle="1 hour"), source=source)
        app.view(f"{app.name}-counts", tumbling(stream))
        return self._finished(app, lambda: pl.DataFrame(app.read(f"{app.name}-counts")))

    def _app(self) -> hr.App:
        return hr.App(f"sinks-{next(_numbers)}", settings=self.ours.settings)

    def _finished(self, app: hr.App, result: Callable[[], pl.DataFrame]) -> Run:
        with tempfile.TemporaryDirectory() as checkpoint:
            query = self.ours.start(app, Path(checkpoint), "caught-up", self.size.rows)
            query.awaitTermination()
        epochs = [epoch(report, taken) for report in query.recentProgress if (taken := records(report))]
        return Run(epochs, result(), 0.0, 0.0)


def _payments(rows: int) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(table) for table in Payments(rows).tables()])


def _changed(random: np.random.Generator, size: Size) -> pl.DataFrame:
    """What an epoch changes of a table."""
    cards = random.choice(size.keys, size.upserts, replace=False)
    names = [f"card-{card:08}" for card in cards]
    at = pl.Series(random.integers(0, 10**15, size.upserts)).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"card": names, "n": random.integers(0, 1_000, size.upserts), "total": random.random(size.upserts), "at": at})


def _no_letters(rows: pl.DataFrame, reasons: object) -> None:
    raise AssertionError(f"{rows.height} rows were refused: {reasons}")


def measured(comparison: Sinks, _: Path) -> Targets:
    """Every figure that has a target."""
    upserts = comparison.postgres("PostgreSQL upserts against a bare COPY + MERGE")
    with KafkaServer() as server:
        topics = Topics(server.bootstrap)
        written = comparison.kafka_sink("Kafka, transactions, against Spark's sink, at least once", topics)
        counted = comparison.kafka_source("Kafka JSON to counts by minute, against from_json", topics)
    return {upserts.name: at_least(upserts, 0.5), written.name: at_least(written, 0.7), counted.name: at_least(counted, 2)}


if __name__ == "__main__":
    jars = ",".join(map(str, fetch_jars(read_lock((HERE / "kafka-jars.lock").read_text()))))
    perform("sinks", Sinks, QUICK if options(__doc__ or "").quick else FULL, measured, {"spark.jars": jars})
