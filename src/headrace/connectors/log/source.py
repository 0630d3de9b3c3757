"""A topic of the embedded log as a streaming source of Spark, batches of Arrow all the way."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.core.columns.schema import ddl
from headrace.log import Log
from headrace.log.files.cursor import Cursor

FORMAT = "headrace_log"


def source() -> type:
    """The data source class, for `spark.dataSource.register`.

    Options: `path` of the log, `topic`, and `start`: "beginning", "end", or offsets by partition as JSON.
    """
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class TopicReader(DataSourceStreamReader):
        def __init__(self, path: str, topic: str, start: str) -> None:
            self._path, self._topic, self._start = path, topic, start

        def initialOffset(self) -> dict[str, int]:  # noqa: N802
            return offsets(opened(self._path), self._topic, self._start)

        def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:  # noqa: N802
            return offsets(opened(self._path), self._topic, "end")

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Any]:
            return [InputPartition(span) for span in spans(start, end)]

        def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
            return read(opened(self._path), self._topic, partition.value)

    class LogSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return FORMAT

        def schema(self) -> str:
            return ddl(opened(self.options["path"]).topic(self.options["topic"]).columns)

        def streamReader(self, schema: object) -> TopicReader:  # noqa: N802
            return TopicReader(self.options["path"], self.options["topic"], self.options.get("start", "beginning"))

    return LogSource


def options(path: Path, topic: str, start: str | Mapping[int, int] = "beginning") -> dict[str, str]:
    """The options that name a topic, and the start."""
    return {"path": str(path), "topic": topic, "start": start if isinstance(start, str) else json.dumps(start)}


def offsets(log: Log, topic: str, place: str) -> dict[str, int]:
    """The present start or end of each partition, or the given offsets. Keys are text: Spark stores offsets as JSON."""
    if place.startswith("{"):
        return dict(json.loads(place))
    return {str(partition): offset for (_, partition), offset in log.consumer(topic, start=place).positions().items()}


def spans(start: Mapping[str, int], end: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """(partition, first offset, end) of all new records."""
    return [(int(index), start.get(index, 0), last) for index, last in end.items() if last > start.get(index, 0)]


def read(log: Log, topic: str, span: tuple[int, int, int]) -> Iterator[pa.RecordBatch]:
    """The records of a span, in the columns of the topic."""
    index, first, end = span
    declared = log.topic(topic)
    cursor = Cursor(log.partition(declared, index), first, outcomes=log.transactions)
    while cursor.offset < end:
        batches = cursor.read(columns=tuple(declared.columns.names), until=end)
        yield from batches
        if not batches and cursor.offset < end:
            # A transaction is open here. It ends, or times out; the records after it must not be skipped.
            log.clock.sleep(0.02)


@cache
def opened(path: str) -> Log:
    """One log for each process."""
    return Log(path)
