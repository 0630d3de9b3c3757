"""Avro's types as readers of columns: the values that each reads from many records at once, and its Arrow type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP
from headrace.core.errors import SchemaError
from headrace.schema.codecs.cursors import RecordCursors

# An item may take no bytes at all (null): then only this bound keeps a wrong count from filling memory.
_MOST_ITEMS = 100_000
_LOGICAL: dict[tuple[str, str | None], tuple[pa.DataType, int]] = {
    ("int", "date"): (pa.date32(), 1),
    ("long", "timestamp-millis"): (TIMESTAMP, 1000),
    ("long", "timestamp-micros"): (TIMESTAMP, 1),
    ("long", "local-timestamp-millis"): (pa.timestamp("us"), 1000),
    ("long", "local-timestamp-micros"): (pa.timestamp("us"), 1),
}


class AvroReader:
    """Reads one value of each record."""

    kind: pa.DataType

    def read(self, cursors: RecordCursors, rows: np.ndarray) -> pa.Array:
        raise TypeError(f"{type(self).__name__} reads nothing")


@dataclass(frozen=True)
class Number(AvroReader):
    """A number, a boolean, or a moment or date that is stored as a number of some unit."""

    kind: pa.DataType
    unit: int = 1
    _SIZES: ClassVar = {pa.bool_(): "u1", pa.float32(): "<f4", pa.float64(): "<f8"}

    def read(self, cursors: RecordCursors, rows: np.ndarray) -> pa.Array:
        if self.kind in self._SIZES:
            size = np.dtype(self._SIZES[self.kind])
            values = np.ascontiguousarray(cursors.fixed(rows, size.itemsize)).view(size).ravel()
            return pa.array(values != 0 if pa.types.is_boolean(self.kind) else values)
        values = cursors.longs(rows)
        bound = 2**31 if self.kind.bit_width == 32 else 2**63 // self.unit
        cursors.refuse(rows, (values < -bound) | (values > bound - 1), "a number does not fit its type")
        values = np.where(cursors.sound[rows], values, 0) * self.unit
        return pa.array(values.astype(np.int32) if self.kind.bit_width == 32 else values).cast(self.kind)


class Text(AvroReader):
    kind = pa.string()

    def read(self, cursors: RecordCursors, rows: np.ndarray) -> pa.Array:
        return cursors.texts(rows).cast(self.kind)


@dataclass(frozen=True)
class Blob(AvroReader):
    """Bytes, of a fixed length or with their length in front."""

    size: int | None = None
    kind: pa.DataType = field(default_factory=pa.binary)

    def read(self, cursors: RecordCursors, rows: np.ndarray) -> pa.Array:
        if self.size is None:
            return cursors.blobs(rows).cast(self.kind)
        found = cursors.fixed(rows, self.size)
        return pa.array([line.tobytes() for line in found], self.kind)


@dataclass(frozen=True)
class Number10(AvroReader):
    """A decimal, stored as the bytes of a whole number."""

    stored: Blob
    kind: pa.DataType

    def read(self, cursors: RecordCursors, rows: np.ndarray) -> pa.Array:
        numbers = np.array([int.from_bytes(data, "big", signed=True) for data in self.stored.read(cursors, rows).to_pylist()], dtype=object)
        bound = 10**self.kind.precision
        wrong = np.array([abs(number) >= bound for number in numbers], dtype=bool)
        cursors.refuse(rows, wrong, "a decimal has too many digits")
        numbers[wrong] = 0
        return pa.array([Decimal(number).scaleb(-self.kind.scale) for number in numbers], self.kind)


@dataclass(frozen=True)
class Enum(AvroReader):
    symbols: tuple[str, ...]
    kind: pa.DataType = field(default_factory=pa.string)

    def read(self, cursors: RecordCursors, rows: np.ndarray) -> pa.Array:
        found = _choice(cursors, rows, len(self.symbols), "an enum has no such symbol")
        return pa.array(self.symbols, self.kind).take(pa.array(found))


class Nothing(AvroReader):
    kind = pa.null()

    def read(self, cursors: RecordCursors, rows: np.ndarray) -> pa.Array:
        return pa.nulls(len(rows))


@dataclass(frozen=True)
class AvroUnion(AvroReader):
    """One of several types; it can become a column if only one of them is not null."""

    branches: tuple[AvroReader, ...]

    @property
    def kind(self) -> pa.DataType:
        kinds = [branch.kind for branch in self.branches if not pa.types.is_null(branch.kind)]
        return kinds[0] if len(kinds) == 1 else pa.null()

    def read(self, cursors: RecordCursors, rows: np.ndarray) -> pa.Array:
        chosen = _choice(cursors, rows, len(self.branches), "a union has no such branch")
        result = pa.nulls(len(rows), self.kind)
        for number, branch in enumerate(self.branches):
            mine = np.flatnonzero((chosen == number) & cursors.sound[rows])
            if len(mine):
                found = branch.read(cursors, rows[mine])
                if branch.kind == self.kind and not pa.types.is_null(self.kind):
                    places = np.full(len(rows), -1, dtype=np.int64)
                    places[mine] = np.arange(len(mine))
                    result = found.take(pa.array(places, mask=places < 0))
        return result


@dataclass(frozen=True)
class AvroRecord(AvroReader):
    fields: tuple[tuple[str, AvroReader], ...]

    @property
    def kind(self) -> pa.DataType:
        return pa.struct([pa.field(name, reader.kind) for name, reader in self.fields])

    def columns(self, cursors: RecordCursors, rows: np.ndarray) -> dict[str, pa.Array]:
        return {name: reader.read(cursors, rows) for name, reader in self.fields}

    def read(self, cursors: RecordCursors, rows: np.ndarray) -> pa.Array:
        return pa.StructArray.from_arrays(list(self.columns(cursors, rows).values()), fields=list(self.kind))


@dataclass(frozen=True)
class Many(AvroReader):
    """An array, or a map, whose items are records of key and value; the n-th items of all records are read together."""

    item: AvroReader
    pairs: bool = False

    @property
    def kind(self) -> pa.DataType:
        inner = self.item.kind
        return pa.map_(inner.field(0).type, inner.field(1).type) if self.pairs else pa.list_(pa.field("element", inner))

    def read(self, cursors: RecordCursors, rows: np.ndarray) -> pa.Array:
        left = np.zeros(len(rows), dtype=np.int64)
        counts = np.zeros(len(rows), dtype=np.int64)
        open_ = np.arange(len(rows))
        owners: list[np.ndarray] = []
        pieces: list[pa.Array] = []
        while len(open_):
            fresh = open_[left[open_] == 0]
            left[fresh] = self._block(cursors, rows[fresh])
            open_ = open_[(left[open_] > 0) & cursors.sound[rows[open_]]]
            if len(open_):
                owners.append(open_)
                pieces.append(self.item.read(cursors, rows[open_]))
                counts[open_] += 1
                left[open_] -= 1
                cursors.refuse(rows[open_], counts[open_] > _MOST_ITEMS, f"an array has more than {_MOST_ITEMS:,} items")
        values = pa.concat_arrays(pieces) if pieces else pa.nulls(0, self.item.kind)
        if owners:
            values = values.take(pa.array(np.argsort(np.concatenate(owners), kind="stable")))
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        if self.pairs:
            return pa.MapArray.from_arrays(offsets, values.field(0), values.field(1))
        return pa.ListArray.from_arrays(offsets, values, type=self.kind)

    def _block(self, cursors: RecordCursors, rows: np.ndarray) -> np.ndarray:
        """The number of items in the next block of each record; 0 where there is none."""
        if not len(rows):
            return np.zeros(0, dtype=np.int64)
        counts = cursors.longs(rows)
        sized = counts < 0
        if sized.any():
            cursors.longs(rows[sized])
        counts = np.abs(counts)
        cursors.refuse(rows, (counts < 0) | (counts > np.maximum(cursors.left(rows), _MOST_ITEMS)), "a count extends past its end")
        return np.where(cursors.sound[rows], counts, 0)


def _choice(cursors: RecordCursors, rows: np.ndarray, count: int, reason: str) -> np.ndarray:
    chosen = cursors.longs(rows)
    cursors.refuse(rows, (chosen < 0) | (chosen >= count), reason)
    return np.where(cursors.sound[rows], chosen, 0)


_PLAIN = {
    "null": Nothing(), "boolean": Number(pa.bool_()), "int": Number(pa.int32()), "long": Number(pa.int64()),
    "float": Number(pa.float32()), "double": Number(pa.float64()), "bytes": Blob(), "string": Text(),
}  # fmt: skip


class Types:
    """Readers for an Avro schema; named types may be used again by their name."""

    def __init__(self) -> None:
        self._named: dict[str, AvroReader | None] = {}

    def reader(self, schema: Any, space: str = "") -> AvroReader:
        if isinstance(schema, list):
            return AvroUnion(tuple(self.reader(branch, space) for branch in schema))
        if isinstance(schema, str):
            return self._known(schema, space)
        kind = schema.get("type") if isinstance(schema, Mapping) else None
        if kind in ("record", "error", "enum", "fixed"):
            return self._named_type(schema, space)
        if kind == "array":
            return Many(self.reader(schema["items"], space))
        if kind == "map":
            return Many(AvroRecord((("key", Text()), ("value", self.reader(schema["values"], space)))), pairs=True)
        if isinstance(kind, str):
            return self._logical(schema, self._known(kind, space))
        if kind is None:
            raise SchemaError(f"{schema!r} is not an Avro type")
        return self.reader(kind, space)

    def _known(self, name: str, space: str) -> AvroReader:
        if name in _PLAIN:
            return _PLAIN[name]
        full = name if "." in name or not space else f"{space}.{name}"
        found = self._named.get(full, self._named.get(name))
        if found is None:
            again = full in self._named
            raise SchemaError(f"Avro type {name!r} " + ("contains itself: columns have no recursion" if again else "is not known"))
        return found

    def _named_type(self, schema: Mapping[str, Any], space: str) -> AvroReader:
        space = schema.get("namespace", space)
        full = schema["name"] if "." in schema["name"] or not space else f"{space}.{schema['name']}"
        self._named[full] = None
        if schema["type"] == "enum":
            found: AvroReader = Enum(tuple(schema["symbols"]))
        elif schema["type"] == "fixed":
            found = self._logical(schema, Blob(schema["size"]))
        else:
            found = AvroRecord(tuple((part["name"], self.reader(part["type"], space)) for part in schema["fields"]))
        self._named[full] = found
        return found

    def _logical(self, schema: Mapping[str, Any], stored: AvroReader) -> AvroReader:
        logical = schema.get("logicalType")
        if logical == "decimal" and isinstance(stored, Blob):
            return Number10(stored, pa.decimal128(schema["precision"], schema.get("scale", 0)))
        known = _LOGICAL.get((schema["type"], logical))
        return stored if known is None else Number(*known)
