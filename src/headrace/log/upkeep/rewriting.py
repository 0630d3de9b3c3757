"""Conversion of kept records to the frames of a compacted segment: few and large, each record with its own offset."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.log.files import frame as frames
from headrace.log.files.checksum import checksum
from headrace.log.files.frame import Frame
from headrace.log.files.layout import stored_schema
from headrace.log.files.partition import Partition
from headrace.log.files.segment_writer import SegmentWriter
from headrace.log.files.writers import NOBODY

FRAME_BYTES = 1024 * 1024


class Rewriter:
    """Collects kept records, and writes them as frames that together span all offsets of the segment."""

    def __init__(self, partition: Partition, output: SegmentWriter, columns: pa.Schema, base: int) -> None:
        self._layout = partition.layout
        compression = partition.topic.config.compression_type
        self._codec = frames.CODECS.index(None if compression == "none" else compression)
        self._output = output
        self._schema = stored_schema(columns, 255)
        self._columns = columns
        self._base = self._next = base
        self._pending: list[pa.RecordBatch] = []
        self._size = 0
        self._met_at = 0
        self._tombstones = False
        self.records = 0

    def add(self, frame: Frame, stored: pa.RecordBatch, kept: np.ndarray, met_at: int) -> None:
        """Add the kept records of a frame. Tombstones that different compactions first met stay in separate frames."""
        if kept.any():
            batch = self._complete(frame, stored).filter(pa.array(kept))
            tombstones = bool(pc.any(batch.column("_tombstone")).as_py())
            apart = met_at != self._met_at and (tombstones or self._tombstones)
            if self._pending and (apart or self._size + batch.nbytes > FRAME_BYTES):
                self._write(self._next)
            self._pending.append(batch)
            self._size += batch.nbytes
            self._met_at = max(self._met_at, met_at)
            self._tombstones = self._tombstones or tombstones
        self._next = frame.next

    def finish(self, until: int) -> None:
        """Write the rest; the last frame reaches up to `until`, also if it has no record."""
        if self._pending:
            self._write(until)
        elif self._base < until:
            self._output.add(*frames.gap(self._base, until, frames.OFFSETS))

    def _complete(self, frame: Frame, stored: pa.RecordBatch) -> pa.RecordBatch:
        """A stored batch with every column that any batch can have."""
        arrays = [self._column(field.name, field.type, frame, stored) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, name: str, kind: pa.DataType, frame: Frame, stored: pa.RecordBatch) -> pa.Array:
        if name == "_offset":
            return pa.array(self._layout.offsets(frame, stored))
        if name in stored.schema.names:
            return stored.column(name).fill_null(False) if name == "_tombstone" else stored.column(name)
        if name == "_time" and self._layout.topic.time is None:
            return self._layout.times(frame, stored)
        if name == "_tombstone":
            return pa.repeat(pa.scalar(False), stored.num_rows)
        return pa.nulls(stored.num_rows, kind)

    def _write(self, until: int) -> None:
        batch = pa.Table.from_batches(self._pending).combine_chunks().to_batches()[0]
        needed = [field.name for field in self._schema if self._needed(field.name, batch.column(field.name))]
        stored = self._layout.stored(batch.select(needed), self._met_at)
        body, raw_length = frames.encode(stored.batch, self._codec)
        frame = Frame(
            base=self._base, next=until, count=batch.num_rows, length=body.size, position=0,
            min_time=stored.min_time, max_time=stored.max_time, appended_at=self._met_at,
            writer=NOBODY, generation=0, sequence=0, transaction=0, durable=0,
            raw_length=raw_length, flags=stored.flags, codec=self._codec, crc=checksum(body),
        )  # fmt: skip
        self._output.add(frame, body)
        self.records += batch.num_rows
        self._base, self._pending, self._size, self._met_at, self._tombstones = until, [], 0, 0, False

    def _needed(self, name: str, column: pa.Array) -> bool:
        if name == "_tombstone":
            return self._tombstones
        return name == "_offset" or name in self._columns.names or column.null_count < len(column)
