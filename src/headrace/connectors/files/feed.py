"""A feed of records from files and streams of lines to a topic of the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.connectors.files.lines import Line, csv_lines, json_lines, plain_lines
from headrace.core.columns.schema import TIMESTAMP
from headrace.core.errors import HeadraceError, SchemaError, SettingsError
from headrace.log import Delivery, Log, Producer, Topic
from headrace.log.errors import RecordTooLarge, TimeAhead
from headrace.log.topic import RESERVED
from headrace.schema.values import Reader, json_reader, text_reader

# Errors of a record, not of the log.
_BAD = (SchemaError, RecordTooLarge, TimeAhead)
_PENDING = 10_000
_ROWS = 50_000

BadLine = Callable[[int, str], None]


@dataclass(frozen=True)
class Feed:
    """The conversion of lines to records.

    `key` and `time` name fields with a record's key and time, where the topic has no such columns; a field that is not a column is removed.
    `separator` separates key and value in the lines of a topic of bytes. A bad line stops the feed, unless `on_bad` takes it.
    """

    key: str | None = None
    time: str | None = None
    separator: str | None = None
    acks: str = "all"
    on_bad: BadLine | None = None


@dataclass
class Fed:
    """The number of stored records, and of lines that were not stored."""

    stored: int = 0
    skipped: int = 0


def feed_ndjson(log: Log, topic: str, lines: Iterable[bytes], feed: Feed) -> Fed:
    """Send one JSON object for each line; for a topic of bytes, each line as it is. Empty lines are ignored.

    The output of `headrace tail` can be fed to another topic: `_key`, `_time` and `_tombstone` are used, offsets and partitions are not.
    """
    declared = log.topic(topic)
    _refuse_beside(declared, feed)
    with log.producer(acks=feed.acks) as producer:
        feeding = _Feeding(producer, declared, feed)
        if declared.structured:
            return feeding.run(json_lines(lines), CheckedRows(declared, feed, json_reader))
        return feeding.run(plain_lines(lines), _Plain(feed))


def feed_csv(log: Log, topic: str, lines: Iterable[str], feed: Feed) -> Fed:
    """Send the rows of a CSV file, whose first line names its columns."""
    declared = log.topic(topic)
    _refuse_beside(declared, feed)
    known = [*declared.columns.names, *(name for name in (feed.key, feed.time) if name), *RESERVED]
    with log.producer(acks=feed.acks) as producer:
        return _Feeding(producer, declared, feed).run(csv_lines(lines, known), CheckedRows(declared, feed, text_reader))


def feed_parquet(log: Log, topic: str, path: Path, feed: Feed) -> Fed:
    """Send the rows of a Parquet file; its columns must fit the topic."""
    declared, fed = log.topic(topic), Fed()
    _refuse_beside(declared, feed)
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise SchemaError(f"{path} cannot be read as Parquet: {error}") from error
    with file, log.producer(acks=feed.acks) as producer:
        for batch in file.iter_batches(_ROWS):
            table, key = _taken(pa.Table.from_batches([batch]), declared, feed.key)
            table, time = _taken(table, declared, feed.time)
            try:
                producer.send_table(topic, table, key=key, time=time)
            except _BAD as error:
                raise SchemaError(
                    f"rows {fed.stored + 1:,} to {fed.stored + table.num_rows:,} of {path}: {error.fact}",
                    why=f"none of these was stored, and the {fed.stored:,} rows before them were" if fed.stored else "nothing was stored",
                    hint=error.hint,
                ) from error
            fed.stored += table.num_rows
    return fed


class _Plain:
    """Lines of a topic of bytes."""

    def __init__(self, feed: Feed) -> None:
        self._separator = feed.separator.encode() if feed.separator else None

    def __call__(self, line: bytes) -> dict[str, Any]:
        if self._separator is None:
            return {"value": line}
        key, found, value = line.partition(self._separator)
        if not found:
            raise ValueError(f"there is no {self._separator.decode()!r} between key and value")
        return {"value": value, "key": key}


class CheckedRows:
    """Rows of a topic with columns, checked against their types, so that a bad one is known before anything is sent."""

    def __init__(self, topic: Topic, feed: Feed, reader: Callable[[pa.Field], Reader]) -> None:
        self._topic = topic
        self._feed = feed
        self._readers = {column.name: reader(column) for column in topic.columns}
        self._required = [column.name for column in topic.columns if not column.nullable]
        self._time_reader = reader(pa.field("time", TIMESTAMP))

    def __call__(self, row: object) -> dict[str, Any]:
        if not isinstance(row, Mapping):
            raise ValueError(f"{str(row)[:60]!r} is not a JSON object")
        values, key, time = dict(row), None, None
        tombstone = values.get("_tombstone") is True
        if not self._topic.key:
            key = values.get("_key") if self._feed.key is None else self._field(values, self._feed.key)
        if not self._topic.time:
            time = values.get("_time") if self._feed.time is None else self._field(values, self._feed.time)
        for name in RESERVED:
            values.pop(name, None)
        read = self._read(values, relaxed=tombstone)
        if tombstone:
            key = tuple(read[name] for name in self._topic.key) or key
            return {"value": None, "key": key, "time": self._moment(time)}
        return {"value": read, "key": key if key is None or isinstance(key, str) else str(key), "time": self._moment(time)}

    def _read(self, values: dict[str, Any], *, relaxed: bool) -> dict[str, Any]:
        read = {}
        for name, value in values.items():
            if name not in self._readers:
                raise ValueError(f"the topic has no column {name!r}; it has {', '.join(self._readers)}")
            try:
                read[name] = self._readers[name](value)
            except ValueError as error:
                raise ValueError(f"column {name!r}: {error}") from error
        missing = next((name for name in self._required if read.get(name) is None), None)
        if missing and not relaxed:
            raise ValueError(f"column {missing!r} has no value, and it is NOT NULL")
        return read

    def _field(self, values: dict[str, Any], name: str) -> Any:
        if name not in values:
            raise ValueError(f"there is no {name!r} in it")
        return values[name] if name in self._readers else values.pop(name)

    def _moment(self, value: object) -> datetime | None:
        return None if value is None else self._time_reader(value)


class _Feeding:
    """One run of a feed: sends records, and reports each line that did not become one."""

    def __init__(self, producer: Producer, topic: Topic, feed: Feed) -> None:
        self._producer = producer
        self._topic = topic
        self._feed = feed
        self._pending: deque[tuple[int, Delivery]] = deque()
        self.fed = Fed()

    def run(self, lines: Iterable[Line], record: Callable[[Any], dict[str, Any]]) -> Fed:
        for number, line in lines:
            try:
                if isinstance(line, ValueError):
                    raise line
                self._pending.append((number, self._producer.send(self._topic.name, **record(line))))
            except ValueError as error:
                self._settle()
                self._refuse(number, str(error))
            if len(self._pending) >= _PENDING:
                self._settle()
        self._settle()
        return self.fed

    def _settle(self) -> None:
        """Wait for the sent records, and count them."""
        with suppress(HeadraceError):  # each delivery has its own
            self._producer.flush()
        while self._pending:
            number, delivery = self._pending.popleft()
            error = delivery.error()
            if error is None:
                self.fed.stored += 1
            elif isinstance(error, _BAD):
                self._refuse(number, error.fact)
            else:
                raise error

    def _refuse(self, number: int, fact: str) -> None:
        if self._feed.on_bad is None:
            raise SchemaError(
                f"line {number}: {fact}",
                why=f"it was not stored; {self.fed.stored:,} records before it were",
                hint="correct the line and send it and those after it again, or continue without bad lines with --skip-bad",
            )
        self.fed.skipped += 1
        self._feed.on_bad(number, fact)


def _taken(table: pa.Table, topic: Topic, name: str | None) -> tuple[pa.Table, pa.ChunkedArray | None]:
    """The column with this name, removed from the table unless it is one of the topic."""
    if name is None:
        return table, None
    if name not in table.column_names:
        raise SchemaError(f"there is no column {name!r} in the file", hint=f"it has {', '.join(table.column_names)}")
    column = table.column(name)
    return (table if name in topic.names else table.drop_columns([name])), column


def _refuse_beside(topic: Topic, feed: Feed) -> None:
    for option, given, own in (("key", feed.key, ", ".join(topic.key)), ("time", feed.time, topic.time)):
        if given and own:
            raise SettingsError(f"topic {topic.name!r} has its {option} in column {own}", hint=f"leave --{option} out")
    if feed.separator and topic.structured:
        raise SettingsError(f"topic {topic.name!r} has columns", hint="leave --key-separator out; --key names the field with the key")
