"""Conversion of a topic's records to the columns of a stored batch, and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.clock import to_datetime
from headrace.core.columns.keys import encode_keys, partitions_of
from headrace.core.columns.schema import TIMESTAMP, declared_type
from headrace.core.columns.values import UNFIT, fitted
from headrace.core.errors import SchemaError
from headrace.core.nearest import choices
from headrace.log.errors import RecordTooLarge, TimeAhead
from headrace.log.files import frame as frames
from headrace.log.files.frame import Frame
from headrace.log.topic import RESERVED, Topic

Records: TypeAlias = pa.Table | pa.RecordBatch
Column: TypeAlias = pa.ChunkedArray | pa.Array
# Numbers of records, ascending.
Rows: TypeAlias = range | list[int] | np.ndarray

HEADERS = pa.map_(pa.string(), pa.binary())

# Optional columns of a batch, each with its flag: a column that no record has takes no space.
_EXTRA = (
    (frames.KEYS, pa.field("_key", pa.binary())),
    (frames.TIMES, pa.field("_time", TIMESTAMP)),
    (frames.HEADERS, pa.field("_headers", HEADERS)),
    (frames.TOMBSTONES, pa.field("_tombstone", pa.bool_())),
    (frames.OFFSETS, pa.field("_offset", pa.int64())),
)


@dataclass(frozen=True)
class StoredBatch:
    """A batch in its stored form, with the bounds of its event times."""

    batch: pa.RecordBatch
    flags: int
    min_time: int
    max_time: int


class BatchLayout:
    """The stored form of one topic's records."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.time_column = topic.time or "_time"
        self._schemas: dict[tuple[str, ...], pa.Schema] = {}

    def arrange(self, records: Records, now: int) -> pa.RecordBatch:
        """Check records against the topic and convert them to its columns and order; nothing is written if this raises."""
        names = records.schema.names
        self._refuse_unknown(names)
        columns = [self._column(records, names, column) for column in self.topic.columns]
        extras = [extra for _, extra in _EXTRA[:4] if extra.name in names and records.column(extra.name).null_count < records.num_rows]
        columns += [_cast(records.column(extra.name), extra, self.topic.name) for extra in extras]
        schema = pa.schema([*self.topic.columns, *extras]) if extras else self.topic.columns
        batch = _one_batch(columns, schema, records.num_rows)
        self._refuse_future(batch, now)
        self._refuse_large(batch)
        self._refuse_unkeyed(batch)
        return batch

    def stored(self, batch: pa.RecordBatch, now: int) -> StoredBatch:
        """A batch with its flags and time bounds."""
        names = batch.schema.names
        flags = sum(flag for flag, extra in _EXTRA if extra.name in names)
        low, high = self._bounds(batch, now)
        return StoredBatch(batch, flags, low, high)

    def keys(self, batch: pa.RecordBatch) -> pa.Array | None:
        """The key of each record as bytes, or None if there are none."""
        if self.topic.key:
            return encode_keys([batch.column(name) for name in self.topic.key])
        return batch.column("_key") if "_key" in batch.schema.names else None

    def split(self, batch: pa.RecordBatch, spare: int) -> Iterable[tuple[int, pa.RecordBatch, Rows]]:
        """The batch by partition with the row numbers, in order; records without a key all go to the partition `spare`."""
        count = self.topic.partitions
        keys = self.keys(batch) if count > 1 else None
        if keys is None:
            yield spare % count, batch, range(batch.num_rows)
            return
        partitions = partitions_of(keys, count)
        partitions = np.where(partitions < 0, spare % count, partitions)
        # Numpy sorts numbers of 16 bits by their digits, twice as fast as longer ones.
        order = np.argsort(partitions.astype(np.uint16) if count < 1 << 16 else partitions, kind="stable")
        arranged = batch.take(pa.array(order))
        ends = np.cumsum(np.bincount(partitions, minlength=count)).tolist()
        for partition, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if end > begin:
                yield partition, arranged.slice(begin, end - begin), order[begin:end]

    def restore(self, frame: Frame, batch: pa.RecordBatch, partition: int, columns: tuple[str, ...] | None) -> pa.RecordBatch:
        """The reader's form of a stored batch: the columns it names, or `visible_columns`."""
        names = columns if columns is not None else self.visible_columns()
        stored = frozenset(batch.schema.names)
        arrays = [batch.column(name) if name in stored else self._added(name, frame, batch, partition) for name in names]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema(tuple(names)))

    def visible_columns(self) -> tuple[str, ...]:
        """The columns of a reader that names none: the topic's own, a key that is not among them, and each record's place and time."""
        key = () if self.topic.key or self.topic.structured else ("_key",)
        return (*self.topic.columns.names, *key, "_partition", "_offset", "_time")

    def schema(self, names: tuple[str, ...]) -> pa.Schema:
        """The schema of restored batches with these columns."""
        known = self._schemas.get(names)
        if known is None:
            known = self._schemas[names] = self._schema(names)
        return known

    def _schema(self, names: tuple[str, ...]) -> pa.Schema:
        kinds = (
            {field.name: field.type for field in self.topic.columns}
            | {extra.name: extra.type for _, extra in _EXTRA}
            | {"_partition": pa.int32(), "_sequence": pa.int64(), "_appended_at": TIMESTAMP}
        )
        unknown = [name for name in names if name not in kinds]
        if unknown:
            raise SchemaError(
                f"topic {self.topic.name!r} has no column {unknown[0]!r}",
                hint=choices(unknown[0], [*self.topic.columns.names, *RESERVED], "columns"),
            )
        return pa.schema([pa.field(name, kinds[name]) for name in names])

    def offsets(self, frame: Frame, batch: pa.RecordBatch) -> np.ndarray:
        """The offset of each record of a stored batch."""
        if frame.flags & frames.OFFSETS:
            return np.asarray(batch.column("_offset"))
        return np.arange(frame.base, frame.base + frame.count, dtype=np.int64)

    def times(self, frame: Frame, batch: pa.RecordBatch) -> pa.Array:
        """The event time of each record of a stored batch."""
        if self.time_column in batch.schema.names:
            return batch.column(self.time_column)
        if self.topic.time:
            return pa.nulls(batch.num_rows, TIMESTAMP)
        return _numbers(np.full(batch.num_rows, frame.appended_at), TIMESTAMP)

    def _added(self, name: str, frame: Frame, batch: pa.RecordBatch, partition: int) -> pa.Array:
        """A column that a stored batch does not have."""
        if name == "_offset":
            return _numbers(self.offsets(frame, batch), pa.int64())
        if name == "_partition":
            return _numbers(np.full(batch.num_rows, partition, dtype=np.int32), pa.int32())
        if name == "_sequence":
            return _numbers(np.full(batch.num_rows, frame.sequence, dtype=np.int64), pa.int64())
        if name == "_appended_at":
            return _numbers(np.full(batch.num_rows, frame.appended_at), TIMESTAMP)
        if name == "_time":
            return self.times(frame, batch)
        if name == "_key" and self.topic.key:
            return self.keys(batch)
        if name == "_tombstone":
            return pa.repeat(pa.scalar(False), batch.num_rows)
        # A column that the topic was given after this batch was written.
        return pa.nulls(batch.num_rows, self.schema((name,)).field(0).type)

    def _column(self, records: Records, names: list[str], column: pa.Field) -> Column:
        if column.name in names:
            values = _cast(records.column(column.name), column, self.topic.name)
        else:
            values = pa.nulls(records.num_rows, column.type)
        if not column.nullable and values.null_count:
            missing = values.null_count
            if "_tombstone" in names:
                missing = pc.sum(pc.and_not(values.is_null(), records.column("_tombstone").fill_null(False))).as_py()
            if missing:
                raise SchemaError(
                    f"column {column.name!r} of topic {self.topic.name!r} is NOT NULL, but {missing} records have no value for it"
                )
        return values

    def _refuse_unknown(self, names: list[str]) -> None:
        unknown = [name for name in names if name not in self.topic.names and not self._optional(name)]
        if unknown:
            raise SchemaError(
                f"topic {self.topic.name!r} has no column {unknown[0]!r}",
                why="nothing was written",
                hint=choices(unknown[0], self.topic.columns.names, "columns"),
            )

    def _optional(self, name: str) -> bool:
        """Whether records may have this column in addition to the topic's own."""
        own = {"_key": self.topic.key, "_time": self.topic.time}
        return any(name == extra.name for _, extra in _EXTRA[:4]) and not own.get(name)

    def _refuse_future(self, batch: pa.RecordBatch, now: int) -> None:
        ahead = self.topic.config.timestamp_after_max_ms
        if ahead < 0 or self.time_column not in batch.schema.names:
            return
        _, high = self._bounds(batch, now)
        if high > now + ahead * 1000:
            shown = to_datetime(high).isoformat() if high < 253_402_300_800_000_000 else f"{high} microseconds after 1970"
            raise TimeAhead(
                f"a record for topic {self.topic.name!r} has the time {shown}, more than {ahead} ms in the future",
                why="one such time would close every window before it",
                hint="correct the time, or raise the topic's message.timestamp.after.max.ms (-1: no limit)",
            )

    def _refuse_large(self, batch: pa.RecordBatch) -> None:
        limit = self.topic.config.max_message_bytes
        if batch.nbytes <= limit:
            return
        sizes = sum((_row_sizes(column) for column in batch.columns), np.zeros(batch.num_rows, np.int64))
        largest = int(sizes.argmax())
        if sizes[largest] > limit:
            which = f"record {largest}" if batch.num_rows > 1 else "a record"
            raise RecordTooLarge(
                f"{which} for topic {self.topic.name!r} has {sizes[largest]:,} bytes; the topic allows {limit:,}",
                hint="raise the topic's max.message.bytes, or store the payload elsewhere and send its address",
            )

    def _refuse_unkeyed(self, batch: pa.RecordBatch) -> None:
        if self.topic.config.compacted and batch.num_rows:
            keys = self.keys(batch)
            if keys is None or keys.null_count:
                raise SchemaError(
                    f"a record for the compacted topic {self.topic.name!r} has no key",
                    why="compaction keeps the latest record per key",
                    hint="give key=, or create the topic with a key column",
                )

    def _bounds(self, batch: pa.RecordBatch, now: int) -> tuple[int, int]:
        if self.time_column not in batch.schema.names:
            return now, now
        bounds = pc.min_max(batch.column(self.time_column).cast(pa.int64()))
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        return (low, high) if low is not None else (frames.NO_TIME, frames.NO_TIME)


@cache
def stored_schema(columns: pa.Schema, flags: int) -> pa.Schema:
    """The schema of a stored batch: the columns of its segment, and the optional ones that its flags name."""
    return pa.schema([*columns, *(extra for flag, extra in _EXTRA if flags & flag)])


def _numbers(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """The same memory as a column without nulls."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _one_batch(columns: list[Column], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    arrays = [_joined(column) for column in columns]
    if any(isinstance(array, pa.ChunkedArray) for array in arrays):
        raise SchemaError(f"{rows:,} records are too many for one call", hint="send them in parts of under 2 GiB")
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _joined(column: Column) -> Column:
    if isinstance(column, pa.Array):
        return column
    # Combining copies, also a single chunk.
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _cast(column: Column, field: pa.Field, topic: str) -> Column:
    try:
        return fitted(column, field)
    except UNFIT as error:
        raise SchemaError(
            f"column {field.name!r} of topic {topic!r} is {declared_type(field)}, the data is {column.type}: {error}",
            why="nothing was written",
            hint="convert the column before sending",
        ) from error


def _row_sizes(column: pa.Array) -> np.ndarray:
    """The approximate bytes of each value: exact for text and bytes, the width for fixed types, the printed length for nested ones."""
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        return np.asarray(pc.binary_length(column).fill_null(0), dtype=np.int64)
    if pa.types.is_nested(kind):
        return np.array([len(str(value)) for value in column.to_pylist()], dtype=np.int64)
    return np.full(len(column), max(1, column.nbytes // max(1, len(column))), dtype=np.int64)
