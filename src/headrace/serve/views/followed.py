"""One view that a server follows: its table, the cursors on its topic, and the records of uncommitted epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl
import pyarrow as pa

from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.log.files.cursor import Cursor, ReadLimits
from headrace.log.upkeep.maintenance import maintenance_lock
from headrace.serve.views.catalog import ServedView
from headrace.serve.views.table import OFFSET, PARTITION, SEQUENCE, TOMBSTONE, ViewTable

_CHUNK = ReadLimits(rows=1_000_000, bytes=256 * 1024 * 1024)


class Followed:
    """One view being followed: its table, the cursors on its topic, and records of uncommitted epochs."""

    def __init__(self, log: Log, view: ServedView, cache: Path | None) -> None:
        self.view = view
        self._log = log
        self._topic = log.topic(view.topic)
        self.table = ViewTable(view, self._topic.id, cache)
        self.ready = False
        self._names = (*view.columns.names, PARTITION, OFFSET, TOMBSTONE, SEQUENCE)
        self._cursors: dict[int, Cursor] = {}
        self._waiting: dict[int, list[pa.RecordBatch]] = {}

    def replaced(self) -> bool:
        """Whether the topic was deleted or created again since."""
        try:
            return self._log.topic(self.view.topic).id != self.table.topic_id
        except UnknownTopic:
            return True

    def advance(self, committed: Callable[[], int]) -> bool:
        """Apply everything up to the last committed epoch; True if the view has moved.

        Compaction removes a record of an epoch once a later epoch that replaces it is committed: what was read is the whole of an epoch
        only if no later one was committed meanwhile. If one was, compaction waits while the rest is read, so that this ends however short
        epochs are.
        """
        epoch = committed()
        if epoch == self.table.epoch and self.ready:
            return False
        self._read_to_end(epoch)
        if committed() != epoch:
            with self._uncompacted():
                epoch = committed()
                self._read_to_end(epoch)
        ready, positions = self._committed(epoch)
        self.table.apply(ready, epoch, positions, first=not self.ready)
        self.ready = True
        return True

    def _read_to_end(self, epoch: int) -> None:
        """Read all that is there now, and no more."""
        ends = {part: self._cursor(part).partition.state().visible for part in self._partitions()}
        while self._read(ends):
            if not self.ready:
                # The table is read for the first time: in parts that fit into memory. One that has readers moves by whole epochs.
                ready, positions = self._committed(epoch)
                self.table.apply(ready, self.table.epoch, positions, first=True)

    @contextmanager
    def _uncompacted(self) -> Iterator[None]:
        """Keep every process from compacting the view's topic; appends go on."""
        with ExitStack() as locks:
            for part in self._partitions():
                locks.enter_context(maintenance_lock(self._cursor(part).partition))
            yield

    def _partitions(self) -> range:
        return range(self._log.topic(self.view.topic).partitions)

    def _read(self, ends: Mapping[int, int]) -> bool:
        """Read a chunk of each partition; True if there is more before these ends."""
        more = False
        for partition, end in ends.items():
            cursor = self._cursor(partition)
            batches = cursor.read(_CHUNK, self._names, until=end)
            self._waiting.setdefault(partition, []).extend(batches)
            more = more or (bool(batches) and cursor.offset < end)
        return more

    def _cursor(self, partition: int) -> Cursor:
        if partition not in self._cursors:
            place = self._log.partition(self._log.topic(self.view.topic), partition)
            start = max(self.table.positions.get(partition, 0), place.state().start)
            self._cursors[partition] = Cursor(place, start, outcomes=self._log.transactions)
        return self._cursors[partition]

    def _committed(self, epoch: int) -> tuple[pl.DataFrame, dict[int, int]]:
        """The records of committed epochs, which wait no longer, and the next offset of each partition."""
        taken: list[pa.RecordBatch] = []
        positions = dict(self.table.positions)
        for partition, batches in self._waiting.items():
            count = next((number for number, batch in enumerate(batches) if _sequence(batch) > epoch), len(batches))
            taken += batches[:count]
            self._waiting[partition] = batches[count:]
            behind = _offset(batches[count]) if count < len(batches) else self._cursors[partition].offset
            positions[partition] = behind
        if not taken:
            places = [(PARTITION, pa.int32()), (OFFSET, pa.int64()), (TOMBSTONE, pa.bool_()), (SEQUENCE, pa.int64())]
            return _frame(pa.schema([*self.view.columns, *places]).empty_table()), positions
        return _frame(pa.Table.from_batches(taken)), positions


def _frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _sequence(batch: pa.RecordBatch) -> int:
    return int(batch.column(SEQUENCE)[0].as_py())


def _offset(batch: pa.RecordBatch) -> int:
    return int(batch.column(OFFSET)[0].as_py())
