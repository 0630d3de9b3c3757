"""The same queries in plain PySpark, over the same topics: Spark's own windowed aggregation, and one Python call a key."""

# ruff: noqa: N802, N803 - the names are Spark's
from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from _payments import COLUMNS
from _processes import forget_peaks, peak_megabytes
from _runs import Run, epoch
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headrace.connectors.log.input import LogInput, opened
from headrace.log import Log

RESULT = "card string, window_start timestamp, n bigint, total double"
_TASKS = 2


class PlainReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a topic as Arrow batches, in as many even tasks as there are cores, with a given number of rows a batch."""

    def __init__(self, path: str, topic: str, rows: int, columns: Sequence[str]) -> None:
        self._rows, self._columns = rows, list(columns)
        self._input = LogInput(Path(path), topic, tuple(columns), None)

    def initialOffset(self) -> dict[str, int]:
        return {str(index): offset for index, offset in self._input.beginning().items()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows)

    def prepareForTriggerAvailableNow(self) -> None:
        return

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        begin = {int(index): offset for index, offset in start.items()}
        ahead = self._input.ahead(begin, self._input.end(), self._rows, 2**62)
        return {str(index): offset for index, offset in ahead.position.items()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition([(int(index), *_share(start[index], last, task)) for index, last in end.items()]) for task in range(_TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for index, first, last in partition.value:
            for batch in self._input.read(index, first, last):
                yield batch.select(self._columns)


def _share(first: int, last: int, task: int) -> tuple[int, int]:
    size = last - first
    return first + size * task // _TASKS, first + size * (task + 1) // _TASKS


class PlainSource(DataSource):
    """A topic of the log as a plain streaming source."""

    @classmethod
    def name(cls) -> str:
        return "plain-log"

    def schema(self) -> str:
        return self.options.get("columns", COLUMNS)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return PlainReader(self.options["path"], self.options["topic"], int(self.options["rows"]), schema.names)


class PlainWriter(DataSourceStreamArrowWriter):
    """Appends what a task has to a topic, durably and at once, as Headrace's own writer does."""

    def __init__(self, path: str, topic: str) -> None:
        self._path, self._topic = Path(path), topic

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        batches = [batch for batch in iterator if batch.num_rows]
        if batches:
            with opened(self._path).producer(acks="all") as producer:
                producer.send_table(self._topic, pa.Table.from_batches(batches))
        return WriterCommitMessage()


class PlainSink(DataSource):
    """A topic of the log as a plain streaming sink."""

    @classmethod
    def name(cls) -> str:
        return "plain-log-sink"

    def streamWriter(self, schema: Any, overwrite: bool) -> PlainWriter:
        return PlainWriter(self.options["path"], self.options["topic"])


class PerKey(StatefulProcessor):
    """Count and sum of one card in one window, the way transformWithState is meant: one call a key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", "n bigint, total double")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        n, total = self._state.get() or (0, 0.0)
        for row in rows:
            n, total = n + 1, total + row.amount
        self._state.update((n, total))
        yield Row(card=key[1], window_start=key[0], n=n, total=total)

    def close(self) -> None:
        return


class SparkSide:
    """Runs the plain queries over topics of payments."""

    name = "spark"

    def __init__(self, spark: SparkSession, log: Log) -> None:
        self.spark, self._log = spark, log
        self._numbers = itertools.count()
        spark.dataSource.register(PlainSource)
        spark.dataSource.register(PlainSink)

    def windows(self, topic: str, rows: int) -> Run:
        """Spark's own operator."""
        return self._run(windowed(payments(self.spark, self._log.path, topic, rows)))

    def per_key(self, topic: str, rows: int) -> Run:
        """One call a key."""
        window = F.window("at", "1 minute").start.alias("window_start")
        grouped = payments(self.spark, self._log.path, topic, rows).select("card", "amount", window).groupBy("window_start", "card")
        return self._run(grouped.transformWithState(PerKey(), RESULT, "append", "none"))

    def first_of_each(self, topic: str, rows: int, bound: str) -> Run:
        """Spark's own operator that lets the first record of a card go on."""
        source = payments(self.spark, self._log.path, topic, rows).withWatermark("at", bound)
        return self._run(source.dropDuplicatesWithinWatermark(["card"]), COLUMNS)

    def near(self, left: str, right: str, rows: int, within: str) -> Run:
        """Spark's own join of two streams whose times are near."""
        one, other = (payments(self.spark, self._log.path, topic, rows).withWatermark("at", "10 seconds") for topic in (left, right))
        other = other.select(*(F.col(name).alias(f"{name}_right") for name in ("card", "amount", "at")))
        near = f"card = card_right and at_right between at - interval {within} and at + interval {within}"
        columns = ("card", "amount", "at", "amount_right", "at_right")
        return self._run(one.join(other, F.expr(near)).select(*columns), f"{COLUMNS}, amount_right double, at_right timestamp")

    def refuses_exact_distinct(self, topic: str) -> bool:
        """Whether Spark's streaming refuses to count distinct values."""
        counted = payments(self.spark, self._log.path, topic, 1).withWatermark("at", "10 seconds").groupBy(F.window("at", "1 minute"))
        try:
            self._run(counted.agg(F.count_distinct("card").alias("n")), "n bigint")
        except AnalysisException:
            return True
        return False

    def _run(self, result: DataFrame, columns: str = RESULT) -> Run:
        topic = f"plain-{next(self._numbers)}"
        self._log.create_topic(topic, partitions=_TASKS, schema=columns)
        forget_peaks()
        with tempfile.TemporaryDirectory() as checkpoint:
            writer = result.writeStream.format("plain-log-sink").option("path", str(self._log.path)).option("topic", topic)
            query = writer.outputMode("append").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()
        epochs = [epoch(report, taken) for report in query.recentProgress if (taken := _records(report))]
        found = pl.from_arrow(self._log.read(topic, columns=self._log.topic(topic).columns.names))
        assert isinstance(found, pl.DataFrame)
        self._log.delete_topic(topic)
        return Run(epochs, found, _state_megabytes(query), peak_megabytes())


def payments(spark: SparkSession, path: Path, topic: str, rows: int) -> DataFrame:
    """A topic as a streaming DataFrame."""
    return spark.readStream.format("plain-log").option("path", str(path)).option("topic", topic).option("rows", rows).load()


def windowed(source: DataFrame) -> DataFrame:
    """Count and sum per card and minute."""
    counted = source.withWatermark("at", "10 seconds").groupBy(F.window("at", "1 minute"), "card")
    totals = counted.agg(F.count("*").alias("n"), F.sum("amount").alias("total"))
    return totals.select("card", F.col("window.start").alias("window_start"), "n", "total")


def _records(report: Mapping[str, Any]) -> int:
    return int(report["numInputRows"])


def _state_megabytes(query: StreamingQuery) -> float:
    """What Spark says its state stores hold in memory, at most."""
    held = [sum(operator["memoryUsedBytes"] for operator in progress["stateOperators"]) for progress in query.recentProgress]
    return max(held, default=0) / 2**20
