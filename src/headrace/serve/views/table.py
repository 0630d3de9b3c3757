"""A view in memory: rows by key in Arrow columns, moved from epoch to epoch as a whole.

One thread applies epochs and saves; any thread reads. Runs of rows never change, so a reader works on a snapshot without a copy. It waits
for that thread only while the rows themselves are moved, and need not: `find` can say that they are being moved.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from headrace.operators.frames import columns_of
from headrace.operators.state.keyed import GONE, KeyedState, Located
from headrace.serve.views.catalog import ServedView
from headrace.serve.views.changes import DELETE, INSERT, OPERATION, UPDATE, RecentChanges, ViewChanges
from headrace.serve.views.prefix_index import PrefixIndexes
from headrace.serve.views.row_texts import RowTexts
from headrace.serve.views.run_files import RunFiles
from headrace.serve.views.shared_runs import SharedFile, SharedRuns

PRESENT = "_present"
# The place of a change in the topic of its view.
PARTITION, OFFSET, TOMBSTONE, SEQUENCE = "_partition", "_offset", "_tombstone", "_sequence"
_RECENT_ROWS = 200_000


@dataclass(frozen=True)
class RunPart:
    """One run of rows, and which of them are present."""

    serial: int
    frame: pl.DataFrame
    present: np.ndarray

    @cached_property
    def marked(self) -> pl.DataFrame:
        """The rows with a column that says which are present; no row is copied."""
        return self.frame.drop(GONE).with_columns(pl.Series(PRESENT, self.present))

    @cached_property
    def shared_presence(self) -> SharedFile:
        """Which rows are present, for other processes."""
        return SharedFile(pl.DataFrame({PRESENT: self.present}))

    def chosen(self, rows: np.ndarray) -> pl.DataFrame:
        """Those of some rows that are present."""
        chosen: pl.DataFrame = self.frame[rows[self.present[rows]]]
        return chosen.drop(GONE)


@dataclass(frozen=True)
class TableSnapshot:
    """All rows of a view as of one epoch."""

    view: ServedView
    epoch: int
    parts: tuple[RunPart, ...]
    indexes: PrefixIndexes
    runs: SharedRuns

    @property
    def rows(self) -> int:
        return sum(int(np.count_nonzero(part.present)) for part in self.parts)

    def lazy(self) -> pl.LazyFrame:
        """The present rows, evaluated only as far as a query needs."""
        if not self.parts:
            return empty_frame(self.view.columns).lazy()
        whole = pl.concat([part.marked.lazy() for part in self.parts])
        return whole.filter(pl.col(PRESENT)).drop(PRESENT)

    def where_equal(self, values: pl.DataFrame) -> pl.LazyFrame:
        """The present rows that may have these values of some columns of the key: by an index where a run is large."""
        if not self.parts:
            return self.lazy()
        found = []
        for part in self.parts:
            rows = self.indexes.rows(part.serial, part.frame, values)
            found.append((part.marked.filter(pl.col(PRESENT)).drop(PRESENT) if rows is None else part.chosen(rows)).lazy())
        return pl.concat(found)

    def shared(self) -> list[tuple[SharedFile, SharedFile]]:
        """All rows for other processes: of each part the rows, and which of them are present."""
        if not self.parts:
            nothing = empty_frame(self.view.columns)
            return [(SharedFile(nothing), SharedFile(pl.DataFrame({PRESENT: []}, {PRESENT: pl.Boolean})))]
        return [(self.runs.of(part.serial, part.frame.drop(GONE)), part.shared_presence) for part in self.parts]


def empty_frame(columns: pa.Schema) -> pl.DataFrame:
    """No row of these columns."""
    frame = pl.from_arrow(columns.empty_table())
    assert isinstance(frame, pl.DataFrame)
    return frame


class ViewTable:
    """The rows of one view, with its recent changes."""

    def __init__(self, view: ServedView, topic_id: str, cache: Path | None) -> None:
        self.view = view
        self.topic_id = topic_id
        self.epoch = 0
        self.positions: dict[int, int] = {}
        self.rows = 0
        """How many there are, counted on from change to change."""
        self.recent = RecentChanges(view.key, _RECENT_ROWS)
        self.texts = RowTexts(empty_frame(view.columns).schema)
        self._files = RunFiles(cache)
        self._state = KeyedState("run", view.key)
        self._indexes, self._runs = PrefixIndexes(), SharedRuns()
        self._lock = threading.Lock()
        self._recent_lock = threading.Lock()
        self._snapshot: TableSnapshot | None = None
        self._saved: tuple[int, dict[int, int]] | None = None
        self._restore()

    def apply(self, records: pl.DataFrame, epoch: int, positions: Mapping[int, int], *, first: bool = False) -> ViewChanges | None:
        """Apply the changes of a topic up to an epoch; returns them. While the table is first read there are none to report."""
        newest = _newest(records, self.view.key)
        located = self._state.locate(newest) if newest.height else None
        with self._lock:
            changed = self._no_changes() if located is None else self._put(newest, located)
            changes = ViewChanges(self.epoch, epoch, changed)
            if not first:
                # Who sees the epoch finds the changes up to it.
                with self._recent_lock:
                    self.recent.add(changes)
            self._snapshot = None
            self.epoch, self.positions = epoch, dict(positions)
        return None if first else changes

    def snapshot(self) -> TableSnapshot:
        """All rows as of the last epoch."""
        made = self._snapshot
        if made is not None:
            return made
        with self._lock:
            if self._snapshot is None:
                parts = tuple(RunPart(*part) for part in self._state.parts())
                self._indexes.keep(part.serial for part in parts)
                self._runs.keep(part.serial for part in parts)
                self._snapshot = TableSnapshot(self.view, self.epoch, parts, self._indexes, self._runs)
            return self._snapshot

    def find(self, keys: pl.DataFrame, *, wait: bool = True) -> tuple[int, pl.DataFrame, np.ndarray] | None:
        """The epoch, the rows of whole keys that are present, and the place of each row's key among the keys.

        None if rows are being moved to the next epoch at this moment, and the caller does not `wait` for that.
        """
        if not self._lock.acquire(blocking=wait):
            return None
        try:
            epoch, located = self.epoch, self._state.locate(keys)
        finally:
            self._lock.release()
        rows = empty_frame(self.view.columns) if located.found is None else columns_of(located.found, self.view.columns.names)
        return epoch, rows, located.places

    def changes_since(self, epoch: int) -> ViewChanges | None:
        """The net changes since an epoch; None if they are no longer known."""
        with self._recent_lock:
            return self.recent.since(epoch)

    def tidy(self) -> None:
        """Release what no query needed lately."""
        self._runs.drop_unread()

    def save(self) -> None:
        """Let the next start continue from here. Only the thread that applies epochs calls it: readers do not wait for the disk."""
        now = (self.epoch, dict(self.positions))
        if now == self._saved:
            return
        content = {
            "topic": self.topic_id,
            "columns": self.view.columns.to_string(),
            "epoch": self.epoch,
            "positions": {str(partition): offset for partition, offset in self.positions.items()},
            "state": self._state.manifest(),
        }
        self._files.save(content)
        self._saved = now

    def forget(self) -> None:
        """Let the next start read the topic from its beginning."""
        self._files.clear()

    def _restore(self) -> None:
        content = self._files.load()
        if content is None or content["topic"] != self.topic_id or content["columns"] != self.view.columns.to_string():
            self._files.clear()
            return
        try:
            self._state.restore(content["state"], self._files)
        except LookupError:
            # The cache is torn: the topic has everything.
            self._state = KeyedState("run", self.view.key)
            self._files.clear()
            return
        self.rows = self._state.size.rows
        self.epoch = content["epoch"]
        self.positions = {int(partition): offset for partition, offset in content["positions"].items()}

    def _put(self, newest: pl.DataFrame, located: Located) -> pl.DataFrame:
        """Replace, add and remove rows; returns one change for each key, with its operation."""
        known = np.zeros(newest.height, dtype=bool)
        known[located.places] = True
        removed = newest.get_column(TOMBSTONE).fill_null(False).to_numpy()
        operation = np.where(removed, DELETE, np.where(known, UPDATE, INSERT))
        changes = newest.drop(TOMBSTONE, SEQUENCE).with_columns(pl.Series(OPERATION, operation))
        effective = known | ~removed
        self.rows += int(np.count_nonzero(~known & ~removed)) - int(np.count_nonzero(known & removed))
        rows = newest.select(self.view.columns.names).with_columns(pl.Series(GONE, removed))
        if effective.all():
            self._state.put(rows, self._files, located)
            return changes
        self._state.put(rows.filter(effective), self._files)
        return changes.filter(effective)

    def _no_changes(self) -> pl.DataFrame:
        empty = empty_frame(self.view.columns)
        places = [pl.lit(0, pl.Int32).alias(PARTITION), pl.lit(0, pl.Int64).alias(OFFSET)]
        return empty.with_columns(*places, pl.lit("").alias(OPERATION))


def _newest(records: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """The last record of each key.

    The records of a partition are in the order of their offsets, and a key is in one partition. Their epochs do not tell their order:
    compaction does not keep them.
    """
    return records.unique(subset=list(key), keep="last", maintain_order=True) if records.height else records
