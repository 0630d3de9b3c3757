"""What a codec makes of many encoded records: rows of those that are good, and the reason for each that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

_PARTS = 8
Record = TypeVar("Record")


@dataclass(frozen=True)
class Decoded:
    """Rows in the order of the records; `places` says which record each row is, `bad` why others are none, by place."""

    table: pa.Table
    places: np.ndarray
    bad: dict[int, str]


class Codec(Protocol):
    """Decodes records into the columns that it was made for."""

    @property
    def columns(self) -> pa.Schema: ...

    def decode(self, values: Sequence[bytes]) -> Decoded: ...


class Refused(Exception):
    """Some record of a batch is not what the fast way takes; `row` is the first such, if that is known."""

    def __init__(self, row: int | None = None) -> None:
        super().__init__(row)
        self.row = row


def apart(
    records: Sequence[Record], together: Callable[[Sequence[Record]], pa.Table], alone: Callable[[Record], pa.Table]
) -> tuple[list[tuple[int, pa.Table]], dict[int, str]]:
    """Decode records together, except those that only `alone` can judge: pieces by the place of their first record, and what is bad.

    A record goes to `alone` only after `together` has refused it on its own, so that what comes out never depends on its neighbours.
    """
    pieces: list[tuple[int, pa.Table]] = []
    bad: dict[int, str] = {}
    waiting = [(0, len(records))] if records else []
    while waiting:
        first, last = waiting.pop()
        try:
            pieces.append((first, together(records[first:last])))
            continue
        except Refused as refused:
            row = refused.row
        if last - first == 1:
            try:
                pieces.append((first, alone(records[first])))
            except ValueError as error:
                bad[first] = str(error)
        else:
            waiting += reversed(list(_parts(first, last, row)))
    return pieces, bad


def _parts(first: int, last: int, row: int | None) -> Iterator[tuple[int, int]]:
    if row is not None and row < last - first:
        cuts = [first, first + row, first + row + 1, last]
    else:
        cuts = [first + (last - first) * part // _PARTS for part in range(_PARTS + 1)]
    yield from ((begin, end) for begin, end in pairwise(cuts) if begin < end)


def gathered(columns: pa.Schema, pieces: Sequence[tuple[np.ndarray, pa.Table]], bad: dict[int, str]) -> Decoded:
    """Pieces as one; a row without a value in a column that must have one is bad, too."""
    table = pa.concat_tables([table for _, table in pieces]) if pieces else columns.empty_table()
    places = np.concatenate([places for places, _ in pieces]) if pieces else np.empty(0, dtype=np.int64)
    order = np.argsort(places, kind="stable")
    if (order[1:] < order[:-1]).any():
        table, places = table.take(pa.array(order)), places[order]
    bad = dict(bad)
    for name in [column.name for column in columns if not column.nullable]:
        if table[name].null_count:
            missing = table[name].is_null().to_numpy(zero_copy_only=False)
            bad |= dict.fromkeys(places[missing].tolist(), f"column {name!r} has no value, and it is NOT NULL")
            table, places = table.filter(pa.array(~missing)), places[~missing]
    return Decoded(table.cast(columns), places, bad)
