"""Topics of a broker for the benchmarks of sinks: made, filled with JSON, counted, and read by Spark's own source and sink."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
from _payments import PARTITIONS, Payments
from _runs import Run, epoch
from _spark_side import payments, windowed
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from headrace.log import Log

_numbers = itertools.count()


class Topics:
    """The topics of one broker."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        # Silent also when the broker ends before it does.
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})

    def create(self) -> str:
        name = f"bench-{next(_numbers)}"
        self._admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(60)
        return name

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(60)

    def fill(self, rows: int) -> str:
        """A topic of payments as JSON objects, each partition in the order of time; moments are microseconds."""
        name = self.create()
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
        place = itertools.cycle(range(PARTITIONS))
        for table in Payments(rows).tables():
            frame = pl.DataFrame(table).with_columns(pl.col("at").to_physical())
            for text in frame.select(pl.struct(pl.all()).struct.json_encode()).to_series():
                producer.produce(name, text.encode(), partition=next(place))
                producer.poll(0)
            producer.flush()
        return name

    def committed(self, name: str) -> tuple[int, float]:
        """How many records readers of what is committed see, and the sum of their amounts."""
        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": name, "isolation.level": "read_committed", "enable.partition.eof": True}
        )
        consumer.assign([TopicPartition(name, partition, 0) for partition in range(PARTITIONS)])
        values, ended = list[bytes](), set[int]()
        while len(ended) < PARTITIONS:
            for message in consumer.consume(50_000, 1.0):
                if message.error() is None:
                    values.append(message.value() or b"")
                else:
                    ended.add(message.partition() or 0)
        consumer.close()
        amounts = pl.Series(values).cast(pl.String).str.json_decode(pl.Struct({"amount": pl.Float64})).struct.field("amount")
        return len(values), float(amounts.sum())


class SparkKafka:
    """Spark's own source and sink of Kafka."""

    def __init__(self, spark: SparkSession, log: Log, servers: str) -> None:
        self._spark, self._log, self._servers = spark, log, servers

    def write(self, source: str, topic: str, rows: int) -> Run:
        """Payments of the log as JSON to a topic."""
        read = payments(self._spark, self._log.path, source, rows)
        made = read.select(F.col("card").alias("key"), F.to_json(F.struct("card", "amount", "at")).alias("value"))
        return self._run(made, "kafka", {"kafka.bootstrap.servers": self._servers, "topic": topic}, pl.DataFrame)

    def count(self, topic: str, rows: int) -> Run:
        """JSON of a topic, counted by Spark's own operator, to a topic of the log."""
        options = {"kafka.bootstrap.servers": self._servers, "subscribe": topic, "startingOffsets": "earliest"}
        read = self._spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=rows).load()
        parsed = read.select(F.from_json(F.col("value").cast("string"), "card string, amount double, at bigint").alias("v")).select("v.*")
        timed = parsed.withColumn("at", F.timestamp_micros("at"))
        sink = f"counted-{next(_numbers)}"
        self._log.create_topic(sink, partitions=2, schema="card string, window_start timestamp, n bigint, total double")
        return self._run(windowed(timed), "plain-log-sink", {"path": str(self._log.path), "topic": sink}, lambda: self._read(sink))

    def _read(self, sink: str) -> pl.DataFrame:
        found = pl.from_arrow(self._log.read(sink, columns=self._log.topic(sink).columns.names))
        assert isinstance(found, pl.DataFrame)
        return found

    def _run(self, made: DataFrame, to: str, options: dict[str, str], result: Callable[[], pl.DataFrame]) -> Run:
        with tempfile.TemporaryDirectory() as checkpoint:
            writer = made.writeStream.format(to).options(**options).option("checkpointLocation", str(Path(checkpoint)))
            query = writer.outputMode("append").trigger(availableNow=True).start()
            query.awaitTermination()
        epochs = [epoch(report, report["numInputRows"]) for report in query.recentProgress if report["numInputRows"]]
        return Run(epochs, result(), 0.0, 0.0)
