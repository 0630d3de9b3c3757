"""Large keyed state: one row a key, found by hash; an epoch costs what it touches, however many keys there are.

Rows are immutable and lie in chunks, one an epoch; a new version of a row is written to a new chunk and the index points to
it. Chunks of one level are united when they are many, and all when little of them still holds, which drops the old versions.
The index is memory only, and made anew from the chunks when a worker meets a shard for the first time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from headrace.operators.blob import decode, encode
from headrace.operators.chunks import FAN_IN
from headrace.operators.contract import Size
from headrace.operators.index import ABSENT, ROW_BITS, ROW_MASK, Index
from headrace.operators.store import Store

GONE = "_gone"
# Runs of up to so many rows are of the lowest level; those of the next are FAN_IN times as large.
_SMALL = 100_000
# All runs are united when there are more than so many rows for each that is present, and some more.
_WASTE, _LITTLE = 8, 1_000


@dataclass(frozen=True)
class _Run:
    serial: int
    level: int
    rows: int
    size: int


@dataclass(frozen=True)
class Located:
    """Where keys are in a state that has not changed since: the hash and slot of each, and the rows that are there."""

    serial: int
    hashes: np.ndarray
    slots: np.ndarray
    found: pl.DataFrame | None
    places: np.ndarray
    """Which of the keys each row that was found is of, in their order."""


class KeyedState:
    """Rows by the columns `keys`. Deleted keys stay as marks (`_gone`) until their chunks are united.

    States of another `phase` unite theirs at other times, so that the shards of an operator do not all have that to do in one epoch.
    """

    def __init__(self, prefix: str, keys: Sequence[str], phase: int = 0) -> None:
        self._prefix = prefix
        self._early = 2 * (phase % 4)
        self._keys = list(keys)
        self._runs: list[_Run] = []
        self._frames: dict[int, pl.DataFrame] = {}
        self._alive: dict[int, np.ndarray] = {}
        # How many rows of each run are neither old versions nor marks.
        self._present: dict[int, int] = {}
        self._index = Index()
        self._serial = 0

    @property
    def size(self) -> Size:
        """How many keys there are, and what is stored of them."""
        return Size(sum(self._present.values()), sum(run.size for run in self._runs))

    def manifest(self) -> str:
        return json.dumps({"serial": self._serial, "runs": [asdict(run) for run in self._runs]})

    def restore(self, manifest: str | None, store: Store) -> None:
        """Become the state that a manifest describes, reading only the runs that are not here already."""
        content: dict[str, Any] = json.loads(manifest) if manifest else {"serial": 0, "runs": []}
        before, self._runs = self._runs, [_Run(**run) for run in content["runs"]]
        self._serial = content["serial"]
        known = next((place for place, pair in enumerate(zip(before, self._runs, strict=False)) if pair[0] != pair[1]), None)
        known = min(len(before), len(self._runs)) if known is None else known
        gone, new = before[known:], self._runs[known:]
        if gone and not (new and max(run.serial for run in gone) < min(run.serial for run in new)):
            # Runs were not united but taken back, with an epoch that failed: what they replaced must be found again.
            self._frames = {run.serial: self._frames[run.serial] for run in before[:known]}
            self._index, self._alive, self._present, gone, new = Index(), {}, {}, [], self._runs
        for run in self._runs:
            if run.serial not in self._frames:
                blob = store.get(self._name(run.serial))
                if blob is None:
                    raise LookupError(f"the state store has no run {self._name(run.serial)!r}, though its manifest names it")
                self._frames[run.serial] = decode(blob)
        for run in new:
            self._take_in(run.serial)
        for run in gone:
            # Whatever the union left out was the mark of a removed key.
            left = self._frames[run.serial].filter(pl.Series(self._alive.pop(run.serial)))
            if len(left):
                self._index.kill(self._resolve(self._hashes(left), left)[0])
        for run in gone:
            del self._frames[run.serial], self._present[run.serial]

    def find(self, keys: pl.DataFrame) -> pl.DataFrame | None:
        """The present rows of these keys, in no order; None if there are none."""
        return self.locate(keys).found

    def locate(self, keys: pl.DataFrame) -> Located:
        """The present rows of these keys in their order, and what `put` need not look for again if it gets these very keys."""
        hashes = self._hashes(keys)
        slots, rows = self._resolve(hashes, keys)
        places = np.flatnonzero(self._index.rows_at(slots) >= 0)
        if rows is None or len(rows) < len(places):
            rows = self._gather(self._index.rows_at(slots[places])) if len(places) else None
        if rows is None:
            return Located(self._serial, hashes, slots, None, places)
        present = ~rows.get_column(GONE)
        if not present.all():
            rows, places = rows.filter(present), places[present.to_numpy()]
        return Located(self._serial, hashes, slots, rows.drop(GONE) if rows.height else None, places)

    def put(self, frame: pl.DataFrame, store: Store, located: Located | None = None) -> None:
        """Write new versions of rows, or marks that keys are gone. Each key once; `located` tells where these are."""
        if frame.is_empty():
            return
        serial = self._keep(frame, _level(len(frame)), store)
        self._take_in(serial, located if located is not None and located.serial == serial else None)
        level = 0
        while any(run.level >= level for run in self._runs):
            same = [run for run in self._runs if run.level == level]
            if len(same) >= max(2, FAN_IN - self._early):
                self._unite(same, level + 1, store)
            level += 1
        present = sum(self._present.values())
        if sum(run.rows for run in self._runs) > _WASTE * present + _LITTLE:
            self._unite(list(self._runs), _level(present), store)

    def where(self, condition: pl.Expr) -> pl.DataFrame | None:
        """The present rows for which a condition is true; looks at every row, a nanosecond each."""
        parts = [frame.filter(pl.Series(self._alive[serial]) & ~pl.col(GONE) & condition) for serial, frame in self._frames.items()]
        parts = [part for part in parts if not part.is_empty()]
        return pl.concat(parts).drop(GONE) if parts else None

    def least(self, column: str, condition: pl.Expr) -> int | None:
        """The smallest value of a column among the present rows for which a condition is true."""
        chosen = [~pl.col(GONE) & condition & pl.lit(pl.Series(self._alive[serial])) for serial in self._frames]
        found = [frame.select(pl.col(column).filter(rows).min()).item() for frame, rows in zip(self._frames.values(), chosen, strict=True)]
        return min((value for value in found if value is not None), default=None)

    def _unite(self, runs: list[_Run], level: int, store: Store) -> None:
        """Several runs as one of a level, without old versions; marks of gone keys go too when no older run can still have the key."""
        chosen = {run.serial: self._alive[run.serial] for run in runs}
        if runs == self._runs[: len(runs)]:
            chosen = {serial: alive & ~self._frames[serial].get_column(GONE).to_numpy() for serial, alive in chosen.items()}
        united = pl.concat([self._frames[serial].filter(pl.Series(rows)) for serial, rows in chosen.items()], rechunk=True)
        # What holds of a run is in none that is newer: all of it can be as new as the newest of them.
        newer = len(self._runs) - 1 - self._runs.index(runs[-1])
        for run in runs:
            self._runs.remove(run)
            store.delete(self._name(run.serial))
        serial = self._serial
        if not united.is_empty():
            self._keep(united, level, store)
            self._runs.insert(len(self._runs) - 1 - newer, self._runs.pop())
            self._alive[serial] = np.ones(len(united), dtype=bool)
            self._present[serial] = len(united) - int(united.get_column(GONE).sum())
        self._index.move(chosen, serial)
        for run in runs:
            del self._frames[run.serial], self._alive[run.serial], self._present[run.serial]
        if self._index.mostly_dead():
            self._index = Index()
            for run in self._runs:
                self._take_in(run.serial)

    def _keep(self, frame: pl.DataFrame, level: int, store: Store) -> int:
        """Store a run as the newest one; gives its number."""
        # In one piece: to take rows out of many takes several times as long.
        marked = (frame if GONE in frame.columns else frame.with_columns(pl.lit(False).alias(GONE))).rechunk()
        blob = encode(marked)
        serial, self._serial = self._serial, self._serial + 1
        store.put(self._name(serial), blob)
        self._runs.append(_Run(serial, level, len(marked), len(blob)))
        self._frames[serial] = marked
        return serial

    def _take_in(self, serial: int, located: Located | None = None) -> None:
        """Let the index point to the rows of a run; the versions it pointed to before are old."""
        frame = self._frames[serial]
        self._alive[serial] = np.ones(len(frame), dtype=bool)
        self._present[serial] = len(frame) - int(frame.get_column(GONE).sum())
        if located is None:
            hashes = self._hashes(frame)
            slots, _ = self._resolve(hashes, frame)
        else:
            hashes, slots = located.hashes, located.slots
        old = self._index.replace(slots, hashes, np.arange(len(frame), dtype=np.int64) | (serial << ROW_BITS))
        old = old[old >= 0]
        for other in np.unique(old >> ROW_BITS).tolist():
            rows = old[old >> ROW_BITS == other] & ROW_MASK
            self._alive[other][rows] = False
            self._present[other] -= len(rows) - int(self._frames[other].get_column(GONE).gather(rows).sum())

    def _resolve(self, hashes: np.ndarray, keys: pl.DataFrame) -> tuple[np.ndarray, pl.DataFrame | None]:
        """The slot of each key in the index, or -1; keys that share a hash are told apart by moving on by one until they fit.

        `hashes` is changed to those under which the keys are, or are to be, stored. Where no key had to be moved on, the rows that were
        compared are given too, in the order of the keys.
        """
        slots = self._index.slots(hashes)
        same, rows = self._same(slots, keys)
        wrong = np.flatnonzero(~same)
        moved = False
        while True:
            absent = np.flatnonzero(slots == ABSENT)
            _, firsts = np.unique(hashes[absent], return_index=True)
            twice = np.delete(absent, firsts)
            pending = np.union1d(wrong, twice)
            if not len(pending):
                return slots, None if moved else rows
            moved = True
            hashes[pending] += np.uint64(1)
            slots[pending] = self._index.slots(hashes[pending])
            wrong = pending[~self._same(slots[pending], keys[pending])[0]]

    def _same(self, slots: np.ndarray, keys: pl.DataFrame) -> tuple[np.ndarray, pl.DataFrame | None]:
        """Whether each slot is free, or has the very key; and the rows of those that are taken."""
        rows = self._index.rows_at(slots)
        same = np.asarray(rows == ABSENT)
        taken = np.flatnonzero(rows >= 0)
        if not len(taken):
            return same, None
        stored, wanted = self._gather(rows[taken]), keys.select(self._keys)
        wanted = wanted if len(taken) == len(rows) else wanted[taken]
        equal = np.ones(len(taken), dtype=bool)
        for name in self._keys:
            equal &= stored.get_column(name).eq_missing(wanted.get_column(name)).to_numpy()
        same[taken] = equal
        return same, stored

    def _gather(self, rows: np.ndarray) -> pl.DataFrame:
        """Rows by their numbers, in that order."""
        # From the first to the last of each run, not to and fro.
        order = np.argsort(rows)
        ordered = rows[order]
        distinct, starts = np.unique(ordered >> ROW_BITS, return_index=True)
        ends = np.append(starts[1:], len(rows))
        parts = [
            self._frames[serial][ordered[begin:end] & ROW_MASK] for serial, begin, end in zip(distinct.tolist(), starts, ends, strict=True)
        ]
        back = np.empty(len(rows), dtype=np.int64)
        back[order] = np.arange(len(rows))
        return pl.concat(parts, rechunk=True)[back]

    def _hashes(self, frame: pl.DataFrame) -> np.ndarray:
        return frame.select(self._keys).hash_rows(seed=11).to_numpy().copy()

    def _name(self, serial: int) -> str:
        return f"{self._prefix}{serial}"


def _level(rows: int) -> int:
    """How large a run of so many rows is: it is united with others of its like, not with small ones again and again."""
    level, most = 0, _SMALL
    while rows > most:
        level, most = level + 1, most * FAN_IN
    return level
