"""The result of a codec for many encoded records: rows of the good ones, and the reason for each bad one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from headrace.core.columns.schema import unit_of
from headrace.core.columns.values import UNFIT, fitted

_PARTS = 8
Record = TypeVar("Record")


@dataclass(frozen=True)
class Decoded:
    """Rows in the order of the records; `places` has the number of each row's record, `bad` the reason for each other record."""

    table: pa.Table
    places: np.ndarray
    bad: dict[int, str]


class Codec(Protocol):
    """Decodes records into the columns that it was made for."""

    @property
    def columns(self) -> pa.Schema: ...

    def decode(self, values: Sequence[bytes]) -> Decoded: ...


class Refused(Exception):
    """Some record of a batch is not accepted by the fast path: the first such, or all candidates, if known."""

    def __init__(self, first: int | None = None, suspects: Sequence[int] = ()) -> None:
        super().__init__(first, suspects)
        self.first, self.suspects = first, suspects


def apart(
    records: Sequence[Record], together: Callable[[Sequence[Record]], pa.Table], alone: Callable[[Record], pa.Table]
) -> tuple[list[tuple[np.ndarray, pa.Table]], dict[int, str]]:
    """Decode records together, except those that only `alone` can judge: tables with the places of their records, and the bad ones.

    A record goes to `alone` only after `together` has refused it on its own, so that the result never depends on its neighbors.
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


def taken(column: pa.Field, kind: pa.DataType) -> bool:
    """Whether values of a type can be converted to a column: text, or a number whose unit is known, is a timestamp, at any depth."""
    if kind.equals(column.type):
        return True
    if pa.types.is_timestamp(column.type):
        return pa.types.is_string(kind) or (pa.types.is_integer(kind) and unit_of(column) is not None)
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type):
        pairs = zip(column.type, kind, strict=False)
        return column.type.num_fields == kind.num_fields and all(one.name == other.name and taken(one, other.type) for one, other in pairs)
    return bool(pa.types.is_list(kind) and pa.types.is_list(column.type) and taken(column.type.value_field, kind.value_type))


def made(found: pa.Array, column: pa.Field) -> tuple[pa.Array, dict[int, str]]:
    """Values converted to a column; null with the reason where one cannot be."""
    try:
        return fitted(found, column), {}
    except UNFIT:
        parts = [_one(found.slice(place, 1), column) for place in range(len(found))]
    bad = {place: part for place, part in enumerate(parts) if isinstance(part, str)}
    return pa.concat_arrays([pa.nulls(1, column.type) if isinstance(part, str) else part for part in parts]), bad


def _one(value: pa.Array, column: pa.Field) -> pa.Array | str:
    try:
        return fitted(value, column)
    except UNFIT as error:
        said = str(error)
        return said if said.startswith("column ") else f"column {column.name!r}: {said}"


def gathered(columns: pa.Schema, pieces: Sequence[tuple[np.ndarray, pa.Table]], bad: dict[int, str]) -> Decoded:
    """Pieces combined; a row without a value in a NOT NULL column is bad, too."""
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
