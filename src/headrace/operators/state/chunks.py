"""State that grows at its end and is removed by time: frames of one epoch each, merged when there are many.

Each chunk knows the range of its order column (a pane, an expiry), so that taking due records touches only chunks that have some. An epoch
writes one blob with its additions that are still needed at its end: the cost depends on the batch, not on the state.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from headrace.operators.contract import Exported, Size
from headrace.operators.frames import rows_where
from headrace.operators.state.blob import decode, encode
from headrace.operators.state.store import Store

# This many chunks of one level are merged into one of the next: each record is rewritten once for each level.
FAN_IN = 16
Merge = Callable[[pl.DataFrame], pl.DataFrame]


class Chunk(NamedTuple):
    """The place of a frame and its range. While it is not stored its size is zero."""

    name: str
    level: int
    rows: int
    size: int
    low: int
    high: int
    stamp: int
    """The checksum of what is stored: an epoch that failed may have left another frame of this name in a worker's memory."""


class Chunks:
    """Frames ordered by the column `order`; `merge` merges records of the same key, of which `order` is a part, and must be associative."""

    def __init__(self, prefix: str, order: str, merge: Merge) -> None:
        self._prefix = prefix
        self._order = order
        self._merge = merge
        self._chunks: list[Chunk] = []
        self._frames: dict[str, pl.DataFrame] = {}
        self._serial = 0

    @property
    def size(self) -> Size:
        return Size(sum(chunk.rows for chunk in self._chunks), sum(chunk.size for chunk in self._chunks))

    def manifest(self) -> str:
        """The description from which this state can be restored."""
        return json.dumps({"serial": self._serial, "chunks": [chunk._asdict() for chunk in self._chunks]})

    def restore(self, manifest: str | None, store: Store) -> list[int]:
        """Become the state that a manifest describes, reading only the missing chunks.

        Returns the orders whose records may have changed: those of every chunk that was added or removed.
        """
        content: dict[str, Any] = json.loads(manifest) if manifest else {"serial": 0, "chunks": []}
        self._serial = content["serial"]
        known = {chunk: self._frames[chunk.name] for chunk in self._chunks}
        self._chunks = [Chunk(**chunk) for chunk in content["chunks"]]
        frames = {chunk: known[chunk] if chunk in known else _load(store, chunk.name) for chunk in self._chunks}
        self._frames = {chunk.name: frame for chunk, frame in frames.items()}
        moved = [(known | frames)[chunk].get_column(self._order) for chunk in known.keys() ^ frames.keys()]
        return pl.concat(moved).unique().to_list() if moved else []

    def export(self) -> Exported:
        frames = [self._frames[chunk.name] for chunk in self._chunks]
        return Exported({self._prefix: pl.concat(frames)} if frames else {})

    def absorb(self, moved: Exported, store: Store) -> None:
        """Take in records of other shards as one chunk."""
        if self._prefix in moved.frames:
            self._write(self._merge(moved.frames[self._prefix]), 0, store)

    def add(self, frame: pl.DataFrame) -> None:
        """Add records, each key once; `save` makes durable what is still needed when the epoch ends."""
        if not frame.is_empty():
            self._keep(frame, 0, b"")

    def span(self) -> tuple[int, int]:
        """The lowest and highest order there is; the second is below the first if there is none."""
        return min((chunk.low for chunk in self._chunks), default=0), max((chunk.high for chunk in self._chunks), default=-(2**62))

    def overlapping(self, low: int, high: int) -> list[pl.DataFrame]:
        """The frames of the chunks that have records from `low` to `high`, whole; a frame never changes."""
        return [self._frames[chunk.name] for chunk in self._chunks if chunk.high >= low and chunk.low <= high]

    def stretches(self, low: int, gap: int) -> list[tuple[int, int]]:
        """The lowest and highest order of each stretch of records from `low` on, with none for at least `gap` before the next."""
        parts = [self._frames[chunk.name].get_column(self._order).unique() for chunk in self._chunks if chunk.high >= low]
        orders = np.unique(np.concatenate([part.filter(part >= low).to_numpy() for part in parts])) if parts else np.empty(0, np.int64)
        if not len(orders):
            return []
        ends = np.flatnonzero(np.diff(orders) >= gap)
        return list(zip(orders[[0, *(ends + 1)]].tolist(), orders[[*ends, -1]].tolist(), strict=True))

    def between(self, low: int, high: int) -> pl.DataFrame | None:
        """The records whose order is at least `low` and less than `high`, merged by key; None if there are none."""
        parts, spans = [], []
        for chunk in self._chunks:
            if chunk.high < low or chunk.low >= high:
                continue
            frame = self._frames[chunk.name]
            if chunk.low < low or chunk.high >= high:
                orders = frame.get_column(self._order).to_numpy()
                frame = rows_where(frame, (orders >= low) & (orders < high))
            if not frame.is_empty():
                parts.append(frame)
                spans.append((max(chunk.low, low), min(chunk.high, high - 1)))
        if len(parts) < 2:
            return parts[0] if parts else None
        spans.sort()
        # Frames that share no value of the order share no key: there is nothing to merge.
        apart = all(before[1] < behind[0] for before, behind in pairwise(spans))
        return pl.concat(parts) if apart else self._merge(pl.concat(parts))

    def save(self, limit: int, store: Store) -> None:
        """End an epoch: drop the records whose order is below `limit`, and make new ones durable.

        A stored chunk with records on both sides stays complete until the middle of its range is due; nothing below `limit` is asked for
        again.
        """
        for chunk in list(self._chunks):
            if chunk.size and 2 * limit <= chunk.low + chunk.high:
                continue
            frame = self._frames[chunk.name]
            self._remove(chunk, store)
            if chunk.high >= limit:
                needed = frame if chunk.low >= limit else rows_where(frame, frame.get_column(self._order).to_numpy() >= limit)
                self._write(needed, chunk.level, store)
        level = 0
        while len(same := [chunk for chunk in self._chunks if chunk.level == level]) >= FAN_IN:
            # In one piece: rows are taken from it again and again, and from many pieces that takes several times as long.
            merged = self._merge(pl.concat([self._frames[chunk.name] for chunk in same], rechunk=True))
            for chunk in same:
                self._remove(chunk, store)
            level += 1
            self._write(merged, level, store)

    def _write(self, frame: pl.DataFrame, level: int, store: Store) -> None:
        if not frame.is_empty():
            blob = encode(frame)
            store.put(self._keep(frame, level, blob), blob)

    def _keep(self, frame: pl.DataFrame, level: int, blob: bytes) -> str:
        name = f"{self._prefix}{self._serial}"
        self._serial += 1
        low, high = span_of(frame.get_column(self._order))
        self._frames[name] = frame
        self._chunks.append(Chunk(name, level, len(frame), len(blob), low, high, zlib.crc32(blob)))
        return name

    def _remove(self, chunk: Chunk, store: Store) -> None:
        self._chunks.remove(chunk)
        del self._frames[chunk.name]
        if chunk.size:
            store.delete(chunk.name)


def span_of(times: pl.Series) -> tuple[int, int]:
    """The lowest and highest of some times."""
    low, high = times.min(), times.max()
    assert isinstance(low, int), "a time that is known"
    assert isinstance(high, int), "a time that is known"
    return low, high


def _load(store: Store, name: str) -> pl.DataFrame:
    blob = store.get(name)
    if blob is None:
        raise LookupError(f"the state has no chunk {name!r}, though its manifest names it")
    return decode(blob)
