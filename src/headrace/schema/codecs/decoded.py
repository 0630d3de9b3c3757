"""What a codec makes of many encoded records: rows of those that are good, and the reason for each that is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """Some record of a batch is not what the fast way takes: the first such, or all that may be such, if that is known."""

    def __init__(self, first: int | None = None, suspects: Sequence[int] = ()) -> None:
        super().__init__(first, suspects)
        self.first, self.suspects = first, suspects


def apart(
    records: Sequence[Record], together: Callable[[Sequence[Record]], pa.Table], alone: Callable[[Record], pa.Table]
) -> tuple[list[tuple[np.ndarray, pa.Table]], dict[int, str]]:
    """Decode records together, except those that only `alone` can judge: tables with the places of their records, and what is bad.

    A record goes to `alone` only after `together` has refused it on its own, so that what comes out never depends on its neighbours.
    """
    pieces: list[tuple[np.ndarray, pa.Table]] = []
    bad: dict[int, str] = {}
    waiting = [np.arange(len(records))] if records else []
    while waiting:
        places = waiting.pop()
        try:
            pieces.append((places, together([records[place] for place in places.tolist()])))
            continue
        except Refused as error:
            refused = error
        if len(places) == 1:
            try:
                pieces.append((places, alone(records[int(places[0])])))
            except ValueError as error:
                bad[int(places[0])] = str(error)
        else:
            waiting += [part for part in _parts(places, refused) if len(part)]
    return pieces, bad


def _parts(places: np.ndarray, refused: Refused) -> list[np.ndarray]:
    if refused.first is not None and refused.first < len(places):
        return [places[: refused.first], places[refused.first : refused.first + 1], places[refused.first + 1 :]]
    if 0 < len(refused.suspects) < len(places):
        return [np.delete(places, refused.suspects), *places[list(refused.suspects)].reshape(-1, 1)]
    return np.array_split(places, _PARTS)


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
