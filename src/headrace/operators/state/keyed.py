"""Large keyed state: one row for each key, found by hash; the cost of an epoch depends on the rows it touches, not on the number of keys.

Rows are immutable and are in runs. An epoch writes one run: its new versions of rows, the live rows of small runs, so that there are not
too many, and the live rows of the oldest runs when more than half of all stored rows are old versions. So no epoch writes much more than it
changes, and the stored size stays within twice that of the live rows. The index is in memory only, and is built from the runs when a worker
first gets a shard.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from headrace.operators.contract import Exported, Size
from headrace.operators.frames import columns_of, row_hashes, rows_at, with_constant
from headrace.operators.nulls import same_values
from headrace.operators.state.blob import decode, encode
from headrace.operators.state.chunks import FAN_IN
from headrace.operators.state.found_rows import FoundRows
from headrace.operators.state.key_index import ABSENT, ROW_BITS, ROW_MASK, Index
from headrace.operators.state.row_lookup import WantedKeys
from headrace.operators.state.run_rows import RunRows
from headrace.operators.state.store import Store

GONE = "_gone"
# Runs of this many rows are large, or of this share of all stored rows: they are not merged to become larger.
_LARGE, _SHARE = 65_536, 128
# This many rows may be stored for each present one, and some more.
_WASTE, _LITTLE = 2, 1_000


class _Run(NamedTuple):
    serial: int
    rows: int
    size: int


@dataclass(frozen=True)
class Located:
    """The places of keys in a state that has not changed since: the hash and slot of each, and the present rows."""

    serial: int
    hashes: np.ndarray
    slots: np.ndarray
    found: pl.DataFrame | None
    places: np.ndarray
    """The number of the key of each row that was found, in their order."""


class KeyedState:
    """Rows by the columns `keys`. Deleted keys stay as tombstones (`_gone`) until no older run can have a version of them.

    `due` names moments of a row, for `reached`.
    """

    def __init__(self, prefix: str, keys: Sequence[str], **due: pl.Expr) -> None:
        self._prefix = prefix
        self._due_at = due
        self._keys = list(keys)
        # From the oldest to the newest: a live row is in no newer one.
        self._runs: list[_Run] = []
        self._rows: dict[int, RunRows] = {}
        self._index = Index()
        self._serial = 0

    @property
    def size(self) -> Size:
        """The number of keys, and their stored size."""
        return Size(self._present(), sum(run.size for run in self._runs))

    def manifest(self) -> str:
        return json.dumps({"serial": self._serial, "runs": self._runs})

    def restore(self, manifest: str | None, store: Store) -> None:
        """Become the state that a manifest describes, reading only the missing runs."""
        content: dict[str, Any] = json.loads(manifest) if manifest else {"serial": 0, "runs": []}
        before, self._runs = self._runs, [_Run(*run) for run in content["runs"]]
        since, self._serial = self._serial, content["serial"]
        kept = set(before).intersection(self._runs)
        gone, new = [run for run in before if run not in kept], [run for run in self._runs if run not in kept]
        frames = {run.serial: self._rows[run.serial].frame for run in kept}
        if since > min((run.serial for run in new), default=self._serial):
            # This is not a later state but that before a failed epoch: the rows that were live then must be found again.
            self._index, self._rows, gone, new = Index(), {}, [], self._runs
        for run in new:
            self._take_in(run.serial, frames[run.serial] if run.serial in frames else self._read(run.serial, store))
        for run in gone:
            # A key that no new run has was a tombstone.
            self._forget(run.serial, self._rows[run.serial].alive)
            del self._rows[run.serial]

    def _read(self, serial: int, store: Store) -> pl.DataFrame:
        blob = store.get(self._name(serial))
        if blob is None:
            raise LookupError(f"the state has no run {self._name(serial)!r}, though its manifest names it")
        return decode(blob)

    def find(self, keys: pl.DataFrame) -> pl.DataFrame | None:
        """The present rows of these keys, in no order; None if there are none."""
        return self.locate(keys).found

    def locate(self, keys: pl.DataFrame) -> Located:
        """The present rows of these keys in their order, and their places, so that `put` with the same keys need not find them again."""
        hashes = self._hashes(keys)
        slots, rows = self._resolve(hashes, keys)
        numbers = self._index.rows_at(slots)
        places = np.flatnonzero(numbers >= 0)
        if rows is None or len(rows) < len(places):
            rows = self._gather(numbers[places]) if len(places) else None
        if rows is None:
            return Located(self._serial, hashes, slots, None, places)
        present = ~rows.get_column(GONE)
        if not present.all():
            rows, places = rows.filter(present), places[present.to_numpy()]
        return Located(self._serial, hashes, slots, _unmarked(rows) if rows.height else None, places)

    def put(self, frame: pl.DataFrame, store: Store, located: Located | None = None) -> None:
        """Write new versions of rows, or tombstones. Each key once; `located` has their places."""
        if frame.is_empty():
            return
        serial, self._serial = self._serial, self._serial + 1
        # In one piece: taking rows from many pieces takes several times as long.
        marked = _marked(frame).rechunk()
        self._take_in(serial, marked, located if located is not None and located.serial == serial else None)
        self._runs.append(_Run(serial, len(frame), 0))
        merged = self._crowded() | self._due()
        self._write([run for run in self._runs if run.serial in merged or run.serial == serial], store)

    def reached(self, kind: str, moment: int) -> pl.DataFrame | None:
        """The present rows whose moment of this kind is not after `moment`; reads no others."""
        due = self._due_at[kind]
        parts = [rows_at(rows.frame, numbers) for rows in self._rows.values() if len(numbers := rows.reached(kind, due, moment))]
        return _unmarked(pl.concat(parts)) if parts else None

    def matching(self, columns: Sequence[str], wanted: pl.DataFrame) -> FoundRows | None:
        """The present rows whose `columns` equal wanted ones without a null, whatever their key; reads no others."""
        return FoundRows.of(
            [(places, _unmarked(rows_at(rows.frame, numbers))) for places, rows, numbers in self._matching(columns, wanted)]
        )

    def counted(self, columns: Sequence[str], wanted: pl.DataFrame) -> np.ndarray:
        """The number of present rows that `matching` has for each of the wanted ones."""
        return sum(
            (np.bincount(places, minlength=wanted.height) for places, _, _ in self._matching(columns, wanted)),
            start=np.zeros(wanted.height, dtype=np.int64),
        )

    def _matching(self, columns: Sequence[str], wanted: pl.DataFrame) -> Iterator[tuple[np.ndarray, RunRows, np.ndarray]]:
        keys = WantedKeys(wanted, columns)
        for rows in self._rows.values():
            places, numbers = rows.lookup(columns).find(keys, present=rows.are_present)
            if len(places):
                yield places, rows, numbers

    def all(self) -> pl.DataFrame | None:
        """Every present row; None if there are none."""
        parts = [rows.frame.filter(pl.Series(rows.alive) & ~pl.col(GONE)) for rows in self._rows.values()]
        parts = [part for part in parts if not part.is_empty()]
        return pl.concat(parts).drop(GONE) if parts else None

    def parts(self) -> list[tuple[int, pl.DataFrame, np.ndarray]]:
        """All runs: the number of each, its rows, and which of them are present. A run never changes; which rows are present does."""
        return [
            (serial, rows.frame, rows.alive.copy() if rows.marks is None else rows.alive & ~rows.marks)
            for serial, rows in self._rows.items()
        ]

    def export(self) -> Exported:
        rows = self.all()
        return Exported({} if rows is None else {self._prefix: rows})

    def absorb(self, moved: Exported, store: Store) -> None:
        """Take over rows of other shards as one run."""
        if self._prefix in moved.frames:
            self.put(moved.frames[self._prefix], store)

    def _present(self) -> int:
        return sum(rows.present for rows in self._rows.values())

    def _crowded(self) -> set[int]:
        """The small runs to merge with the newest: those about as large, if there are many or if together they are large."""
        *others, newest = self._runs
        large = max(_LARGE, sum(run.rows for run in self._runs) // _SHARE)
        chosen, rows = set[int](), newest.rows
        while rows < large:
            like = [run for run in others if run.serial not in chosen and _magnitude(run.rows) == _magnitude(rows) and run.rows < large]
            if len(like) < FAN_IN - 1 and rows + sum(run.rows for run in like) < large:
                break
            chosen |= {run.serial for run in like}
            rows += sum(run.rows for run in like)
        return chosen

    def _due(self) -> set[int]:
        """The oldest runs, if too much is stored: until it is not, or until their live rows are as many as the newest run's."""
        present = self._present()
        # An empty state stores nothing.
        spare = sum(run.rows for run in self._runs) - (_WASTE * present + _LITTLE if present else 0)
        room = max(_LARGE, self._runs[-1].rows)
        chosen = set[int]()
        for run in self._runs:
            if spare <= 0 or room <= 0:
                break
            holding = self._rows[run.serial].present
            chosen.add(run.serial)
            spare -= run.rows - holding
            room -= holding
        return chosen

    def _write(self, runs: list[_Run], store: Store) -> None:
        """Store the live rows of several runs as the newest of them. Tombstones are left out when no older run can have the key."""
        newest = runs[-1].serial
        for run, _ in takewhile(lambda pair: pair[0] == pair[1], zip(runs, self._runs, strict=False)):
            rows = self._rows[run.serial]
            if rows.marks is not None:
                self._forget(run.serial, rows.alive & rows.marks)
        if len(runs) > 1 or not self._rows[newest].alive.all():
            newest = self._merge([run.serial for run in runs])
        for run in runs:
            self._runs.remove(run)
            if run.size:
                store.delete(self._name(run.serial))
        frame = self._rows[newest].frame
        if frame.is_empty():
            del self._rows[newest]
            return
        blob = encode(frame)
        store.put(self._name(newest), blob)
        self._runs.append(_Run(newest, len(frame), len(blob)))

    def _merge(self, serials: list[int]) -> int:
        """Merge the live rows of some runs into one; returns its number."""
        parts = {serial: self._rows.pop(serial) for serial in serials}
        merged = pl.concat([rows.holding() for rows in parts.values()], rechunk=True)
        before = np.concatenate([np.flatnonzero(rows.alive) | (serial << ROW_BITS) for serial, rows in parts.items()])
        made, self._serial = self._serial, self._serial + 1
        self._index.move(self._hashes(merged), before, np.arange(len(merged)) | (made << ROW_BITS))
        self._rows[made] = RunRows.of(merged, merged.get_column(GONE))
        return made

    def _forget(self, serial: int, chosen: np.ndarray) -> None:
        """Remove some live rows of a run from the index."""
        rows, numbers = self._rows[serial], np.flatnonzero(chosen)
        if len(numbers):
            self._index.kill(self._hashes(rows_at(rows.frame, numbers)), numbers | (serial << ROW_BITS))
            rows.alive[numbers] = False

    def _take_in(self, serial: int, frame: pl.DataFrame, located: Located | None = None) -> None:
        """Point the index to the rows of a new run; the versions it pointed to before are old."""
        self._rows[serial] = RunRows.of(frame, frame.get_column(GONE))
        if located is None:
            hashes = self._hashes(frame)
            slots, _ = self._resolve(hashes, columns_of(frame, self._keys), self._keys)
        else:
            hashes, slots = located.hashes, located.slots
        old = self._index.replace(slots, hashes, np.arange(len(frame), dtype=np.int64) | (serial << ROW_BITS))
        for other, rows in _by_run(np.sort(old[old >= 0])):
            self._rows[other].outdate(rows)

    def _resolve(
        self, hashes: np.ndarray, keys: pl.DataFrame, columns: Sequence[str] | None = None
    ) -> tuple[np.ndarray, pl.DataFrame | None]:
        """The slot of each key in the index, or -1; keys that share a hash move on by one until they fit.

        `hashes` is changed to those under which the keys are, or are to be, stored. Where no key had to move, the compared rows are
        returned too, in the order of the keys: all of their columns or some, with the key among them.
        """
        slots = self._index.slots(hashes)
        same, rows = self._same(slots, keys, columns)
        pending = np.flatnonzero(~same)
        if not len(pending) and (slots != ABSENT).all():
            return slots, rows
        rows = None if len(pending) else rows
        # The first slot on the way of each key whose own key is gone: a new key takes it, otherwise each one that goes and returns would be
        # one step farther away each time.
        left, left_hashes = np.full(len(slots), ABSENT), np.zeros(len(slots), np.uint64)
        while len(pending):
            first = pending[(left[pending] == ABSENT) & self._index.are_left(slots[pending])]
            left[first], left_hashes[first] = slots[first], hashes[first]
            hashes[pending] += np.uint64(1)
            slots[pending] = self._index.slots(hashes[pending])
            pending = pending[~self._same(slots[pending], rows_at(keys, pending), self._keys)[0]]
        absent = np.flatnonzero(slots == ABSENT)
        taking = absent[left[absent] != ABSENT]
        slots[taking], hashes[taking] = left[taking], left_hashes[taking]
        return slots, None if self._set_apart(hashes, slots, absent) else rows

    def _set_apart(self, hashes: np.ndarray, slots: np.ndarray, absent: np.ndarray) -> bool:
        """Let each of several new keys have a hash of its own, under which no other one is or is to be stored; whether one had to move."""
        taken, firsts = np.unique(hashes[absent], return_index=True)
        pending = np.delete(absent, firsts)
        moved = len(pending) > 0
        while len(pending):
            hashes[pending] += np.uint64(1)
            slots[pending] = self._index.slots(hashes[pending])
            free = pending[self._index.are_free(slots[pending]) & ~np.isin(hashes[pending], taken)]
            more, firsts = np.unique(hashes[free], return_index=True)
            taken, pending = np.append(taken, more), np.setdiff1d(pending, free[firsts])
        return moved

    def _same(self, slots: np.ndarray, keys: pl.DataFrame, columns: Sequence[str] | None) -> tuple[np.ndarray, pl.DataFrame | None]:
        """Whether each slot is free, or has the same key; and the rows of those that are taken."""
        rows = self._index.rows_at(slots)
        same = np.asarray(rows == ABSENT)
        taken = np.flatnonzero(rows >= 0)
        if not len(taken):
            return same, None
        stored, wanted = self._gather(rows[taken], columns), columns_of(keys, self._keys)
        wanted = wanted if len(taken) == len(rows) else rows_at(wanted, taken)
        equal = np.ones(len(taken), dtype=bool)
        for name in self._keys:
            equal &= same_values(stored.get_column(name), wanted.get_column(name))
        same[taken] = equal
        return same, stored

    def _gather(self, rows: np.ndarray, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Rows by their numbers, in that order: all of their columns, or some."""
        if len(rows) == 1:
            (row,) = rows.tolist()
            frame = self._rows[row >> ROW_BITS].frame
            return rows_at(frame if columns is None else columns_of(frame, columns), rows & ROW_MASK)
        # From the first to the last of each run, not to and fro.
        order = np.argsort(rows)
        ordered = rows[order]
        frames = ((self._rows[serial].frame, places) for serial, places in _by_run(ordered))
        parts = [rows_at(frame if columns is None else columns_of(frame, columns), places) for frame, places in frames]
        if np.array_equal(rows, ordered):
            return pl.concat(parts, rechunk=True)
        back = np.empty(len(rows), dtype=np.int64)
        back[order] = np.arange(len(rows))
        return rows_at(pl.concat(parts, rechunk=True), back)

    def _hashes(self, frame: pl.DataFrame) -> np.ndarray:
        return row_hashes(frame, self._keys, seed=11).copy()

    def _name(self, serial: int) -> str:
        return f"{self._prefix}{serial}"


def _marked(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows with their marks as the last column, so that those from elsewhere have the same order."""
    if GONE not in frame.columns:
        return with_constant(frame, GONE, False, pl.Boolean)
    return frame if frame.columns[-1] == GONE else columns_of(frame, [*(name for name in frame.columns if name != GONE), GONE])


def _unmarked(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows without their marks, which are the last column."""
    return columns_of(rows, rows.columns[:-1])


def _by_run(rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The runs that sorted row numbers are of, each with the places in it."""
    numbers = rows >> ROW_BITS
    if len(rows) and numbers[0] == numbers[-1]:
        yield int(numbers[0]), rows & ROW_MASK
        return
    bounds = np.flatnonzero(np.diff(numbers, prepend=ABSENT, append=ABSENT))
    for start, end in pairwise(bounds.tolist()):
        yield int(numbers[start]), rows[start:end] & ROW_MASK


def _magnitude(rows: int) -> int:
    """The size class of a run: it is merged with others of its class, not with small ones again and again."""
    magnitude = 0
    while rows >= FAN_IN:
        magnitude, rows = magnitude + 1, rows // FAN_IN
    return magnitude
