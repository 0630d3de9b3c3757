"""Large keyed state: one row a key, found by hash; an epoch costs what it touches, however many keys there are.

Rows are immutable and lie in runs. An epoch writes one run: the new versions of rows that it brings, and with them what still holds of
small runs, so that there are not too many, and of the oldest ones when more than half of all that is stored is old versions. So no
epoch has much more to write than it brings, and what is stored stays within twice what is there.
The index is memory only, and made anew from the runs when a worker meets a shard for the first time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from headrace.operators.blob import decode, encode
from headrace.operators.chunks import FAN_IN
from headrace.operators.contract import Size
from headrace.operators.index import ABSENT, ROW_BITS, ROW_MASK, Index
from headrace.operators.store import Store

GONE = "_gone"
# Runs of so many rows are large, or of this share of all that is stored: they are not united to become larger.
_LARGE, _SHARE = 65_536, 128
# So many rows may be stored for each that is present, and some more.
_WASTE, _LITTLE = 2, 1_000


class _Run(NamedTuple):
    serial: int
    rows: int
    size: int


@dataclass
class _Rows:
    """A run in memory."""

    frame: pl.DataFrame
    alive: np.ndarray
    """Which rows are no old versions."""
    marks: np.ndarray | None
    """Which rows say that a key is gone; None if there are none."""
    present: int
    """How many rows are neither."""

    @classmethod
    def of(cls, frame: pl.DataFrame) -> _Rows:
        gone = frame.get_column(GONE)
        marks = gone.to_numpy() if gone.any() else None
        return cls(frame, np.ones(len(frame), dtype=bool), marks, len(frame) - int(gone.sum()))

    def outdate(self, rows: np.ndarray) -> None:
        """There are newer versions of some rows."""
        self.alive[rows] = False
        self.present -= len(rows) - (0 if self.marks is None else int(self.marks[rows].sum()))

    def holding(self) -> pl.DataFrame:
        return self.frame if self.alive.all() else self.frame.filter(self.alive)


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
    """Rows by the columns `keys`. Deleted keys stay as marks (`_gone`) until no older run can have a version of them."""

    def __init__(self, prefix: str, keys: Sequence[str]) -> None:
        self._prefix = prefix
        self._keys = list(keys)
        # From the oldest to the newest: a row that holds is in none that is newer.
        self._runs: list[_Run] = []
        self._rows: dict[int, _Rows] = {}
        self._index = Index()
        self._serial = 0

    @property
    def size(self) -> Size:
        """How many keys there are, and what is stored of them."""
        return Size(self._present(), sum(run.size for run in self._runs))

    def manifest(self) -> str:
        return json.dumps({"serial": self._serial, "runs": self._runs})

    def restore(self, manifest: str | None, store: Store) -> None:
        """Become the state that a manifest describes, reading only the runs that are not here already."""
        content: dict[str, Any] = json.loads(manifest) if manifest else {"serial": 0, "runs": []}
        before, self._runs = self._runs, [_Run(*run) for run in content["runs"]]
        since, self._serial = self._serial, content["serial"]
        kept = set(before).intersection(self._runs)
        gone, new = [run for run in before if run not in kept], [run for run in self._runs if run not in kept]
        frames = {run.serial: self._rows[run.serial].frame for run in kept}
        if since > min((run.serial for run in new), default=self._serial):
            # Not what came after, but what was before an epoch that failed: which rows held then must be found again.
            self._index, self._rows, gone, new = Index(), {}, [], self._runs
        for run in new:
            self._take_in(run.serial, frames[run.serial] if run.serial in frames else self._read(run.serial, store))
        for run in gone:
            # Whatever no new run has was the mark of a removed key.
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
        serial, self._serial = self._serial, self._serial + 1
        # In one piece: to take rows out of many takes several times as long.
        marked = (frame if GONE in frame.columns else frame.with_columns(pl.lit(False).alias(GONE))).rechunk()
        self._take_in(serial, marked, located if located is not None and located.serial == serial else None)
        self._runs.append(_Run(serial, len(frame), 0))
        united = self._crowded() | self._due()
        self._write([run for run in self._runs if run.serial in united or run.serial == serial], store)

    def where(self, condition: pl.Expr) -> pl.DataFrame | None:
        """The present rows for which a condition is true; looks at every row, a nanosecond each."""
        parts = [rows.frame.filter(pl.Series(rows.alive) & ~pl.col(GONE) & condition) for rows in self._rows.values()]
        parts = [part for part in parts if not part.is_empty()]
        return pl.concat(parts).drop(GONE) if parts else None

    def least(self, column: str, condition: pl.Expr) -> int | None:
        """The smallest value of a column among the present rows for which a condition is true."""
        parts = [(rows.frame, ~pl.col(GONE) & condition & pl.lit(pl.Series(rows.alive))) for rows in self._rows.values()]
        found = [frame.select(pl.col(column).filter(wanted).min()).item() for frame, wanted in parts]
        return min((value for value in found if value is not None), default=None)

    def _present(self) -> int:
        return sum(rows.present for rows in self._rows.values())

    def _crowded(self) -> set[int]:
        """The small runs that the newest is to be united with: those about as large, if they are many or make a large one."""
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
        """The oldest runs, if too much is stored: until it is not, or what still holds of them is as much as the newest brings."""
        present = self._present()
        # Of a state that nothing is in nothing is stored.
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
        """Store what holds of several runs as the newest of them. Marks of gone keys are left out when no older run can have the key."""
        newest = runs[-1].serial
        for run, _ in takewhile(lambda pair: pair[0] == pair[1], zip(runs, self._runs, strict=False)):
            rows = self._rows[run.serial]
            if rows.marks is not None:
                self._forget(run.serial, rows.alive & rows.marks)
        if len(runs) > 1 or not self._rows[newest].alive.all():
            newest = self._unite([run.serial for run in runs])
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

    def _unite(self, serials: list[int]) -> int:
        """Make one run of all that holds of some; gives its number."""
        parts = {serial: self._rows.pop(serial) for serial in serials}
        united = pl.concat([rows.holding() for rows in parts.values()], rechunk=True)
        before = np.concatenate([np.flatnonzero(rows.alive) | (serial << ROW_BITS) for serial, rows in parts.items()])
        made, self._serial = self._serial, self._serial + 1
        self._index.move(self._hashes(united), before, np.arange(len(united)) | (made << ROW_BITS))
        self._rows[made] = _Rows.of(united)
        return made

    def _forget(self, serial: int, chosen: np.ndarray) -> None:
        """Let the index not have some rows of a run any more, which hold."""
        rows, numbers = self._rows[serial], np.flatnonzero(chosen)
        if len(numbers):
            self._index.kill(self._hashes(rows.frame[numbers]), numbers | (serial << ROW_BITS))
            rows.alive[numbers] = False

    def _take_in(self, serial: int, frame: pl.DataFrame, located: Located | None = None) -> None:
        """Let the index point to the rows of a new run; the versions it pointed to before are old."""
        self._rows[serial] = _Rows.of(frame)
        if located is None:
            hashes = self._hashes(frame)
            slots, _ = self._resolve(hashes, frame)
        else:
            hashes, slots = located.hashes, located.slots
        old = self._index.replace(slots, hashes, np.arange(len(frame), dtype=np.int64) | (serial << ROW_BITS))
        for other, rows in _by_run(np.sort(old[old >= 0])):
            self._rows[other].outdate(rows)

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
        parts = [self._rows[serial].frame[places] for serial, places in _by_run(rows[order])]
        back = np.empty(len(rows), dtype=np.int64)
        back[order] = np.arange(len(rows))
        return pl.concat(parts, rechunk=True)[back]

    def _hashes(self, frame: pl.DataFrame) -> np.ndarray:
        return frame.select(self._keys).hash_rows(seed=11).to_numpy().copy()

    def _name(self, serial: int) -> str:
        return f"{self._prefix}{serial}"


def _by_run(rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The runs that sorted row numbers are of, each with the places in it."""
    numbers = rows >> ROW_BITS
    bounds = np.flatnonzero(np.diff(numbers, prepend=ABSENT, append=ABSENT))
    for start, end in pairwise(bounds.tolist()):
        yield int(numbers[start]), rows[start:end] & ROW_MASK


def _magnitude(rows: int) -> int:
    """How large a run of so many rows is: it is united with others of its like, not with small ones again and again."""
    magnitude = 0
    while rows >= FAN_IN:
        magnitude, rows = magnitude + 1, rows // FAN_IN
    return magnitude
