"""JSON objects, one for each record, as columns: whole batches by Arrow's reader, records that it refuses one by one.

Missing and null are null, unknown fields are left out, names are case-sensitive. A moment is ISO 8601 text (UTC if it has no zone), or a
number where its column declares the unit; a date is ISO text, a decimal a number or text; bytes are those of the text. Types are strict:
neither "5" nor 5.0 is an integer. NaN and Infinity, which Python and Java write, are read as doubles. A declared field that occurs twice
makes a record bad: nothing says which is meant.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from headrace.core.columns.schema import unit_of
from headrace.core.columns.values import UNFIT, fitted
from headrace.schema.codecs.decoded import Decoded, Refused, apart, gathered
from headrace.schema.values import json_reader

_BLOCK = 1024 * 1024
_ROW = re.compile(r" in row (\d+)$")
_SPACE = b" \t\r\n"
_FEW = 64
# A close approximation of the moments that Arrow accepts.
_USUAL = r"^\d{4}-[01]\d-[0-3]\d([T ][0-2]\d:[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?$"


class JsonCodec:
    """Decodes JSON objects.

    >>> codec = JsonCodec(pa.schema({"url": pa.string(), "hits": pa.int64()}))
    >>> decoded = codec.decode([b'{"url": "/a", "hits": 2}', b"oops", b'{"url": "/b", "hits": "2"}'])
    >>> decoded.table.to_pylist(), decoded.bad[2]
    ([{'url': '/a', 'hits': 2}], "column 'hits': '2' is not of type bigint")
    """

    def __init__(self, columns: pa.Schema) -> None:
        self.columns = columns
        self._nullable = pa.schema([column.with_nullable(True) for column in columns])
        self._readers = {column.name: json_reader(column) for column in columns}
        # Arrow's reader makes no map of an object.
        self._fast = not any(_has_map(column.type) for column in columns)

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """The records as rows."""
        whole, places, bad = self._objects(values)
        wire = self._wire(whole[0]) if whole else self._nullable
        pieces, refused = apart(whole, lambda records: self._together(records, wire), self._alone)
        bad |= {int(places[place]): reason for place, reason in refused.items()}
        return gathered(self.columns, [(places[mine], table) for mine, table in pieces], bad)

    def _objects(self, values: Sequence[bytes]) -> tuple[list[bytes], np.ndarray, dict[int, str]]:
        """The records that begin and end like an object and are UTF-8, with their places, and the problems of the others.

        An incomplete record then never continues in the next one, so that the number of rows equals the number of records.
        """
        bad: dict[int, str] = {}
        whole, places = list(values), list(range(len(values)))
        if not all(value[:1] == b"{" and value[-1:] == b"}" for value in whole):
            whole = [value.strip(_SPACE) for value in whole]
            bad |= {place: self._problem(value) for place, value in enumerate(whole) if value[:1] != b"{" or value[-1:] != b"}"}
        try:
            b"\n".join(whole).decode()
        except UnicodeDecodeError:
            bad |= {place: problem for place, value in enumerate(whole) if (problem := _encoding_problem(value))}
        if bad:
            places = [place for place in places if place not in bad]
            whole = [whole[place] for place in places]
        return whole, np.array(places, dtype=np.int64), bad

    def _together(self, records: Sequence[bytes], wire: pa.Schema) -> pa.Table:
        if not self._fast:
            raise Refused
        data, block = b"\n".join(records), max(_BLOCK, max(map(len, records)) + 2)
        try:
            table = _read(data, wire, block)
            if table.num_rows != len(records):
                raise Refused
            return self._fitted(table)
        except pa.ArrowInvalid as error:
            # With several blocks, the row is counted from the beginning of one of them.
            told = _ROW.search(str(error)) if len(data) <= block else None
            if told is not None or len(records) <= _FEW:
                raise Refused(int(told[1]) if told else None) from error
            raise Refused(suspects=_suspects(data, wire, block)) from error

    def _fitted(self, table: pa.Table) -> pa.Table:
        """The result of Arrow's reader, in the declared types."""
        try:
            return pa.table([fitted(table.column(column.name), column) for column in self._nullable], schema=self._nullable)
        except UNFIT as error:
            raise Refused from error

    def _wire(self, sample: bytes) -> pa.Schema:
        """The types for Arrow's reader: a date as text, and a moment as text or as a number, as in the first record."""
        try:
            first = json.loads(sample)
        except (ValueError, RecursionError):
            first = {}
        return pa.schema([pa.field(column.name, _wire_type(column, _member(first, column.name))) for column in self.columns])

    def _alone(self, record: bytes) -> pa.Table:
        """One record as Python reads it, with a reason if it is bad."""
        try:
            parsed = json.loads(record.decode(), object_pairs_hook=_Object, parse_float=_number)
        except RecursionError:
            raise ValueError("not JSON that can be read: it is nested too deep") from None
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from None
        row = {}
        for column in self.columns:
            try:
                row[column.name] = self._readers[column.name](_pruned(parsed.once(column.name), column.type))
            except ValueError as error:
                raise ValueError(f"column {column.name!r}: {error}") from None
        try:
            return pa.Table.from_pylist([row], self._nullable)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
            raise ValueError(f"its values do not fit the columns: {error}") from None

    def _problem(self, value: bytes) -> str:
        if not value:
            return "the record is empty"
        try:
            kind = type(json.loads(value.decode())).__name__
        except RecursionError:
            return "not JSON that can be read: it is nested too deep"
        except ValueError as error:
            return f"not JSON: {error}"
        return f"not a JSON object but {kind}"


class _Object(dict[str, Any]):
    """A JSON object that records which of its names occur twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self._twice = {name for name, _ in pairs if [other for other, _ in pairs].count(name) > 1} if len(pairs) > len(self) else ()

    def once(self, name: str) -> Any:
        if name in self._twice:
            raise ValueError("it occurs twice")
        return self.get(name)


class _TooBig:
    """A number too large for a double."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _number(text: str) -> float | _TooBig:
    found = float(text)
    return found if math.isfinite(found) else _TooBig(text)


def _pruned(value: Any, kind: pa.DataType) -> Any:
    """A value without the fields that its type does not have."""
    if pa.types.is_struct(kind) and isinstance(value, _Object):
        return {field.name: _pruned(value.once(field.name), field.type) for field in kind}
    if pa.types.is_map(kind) and isinstance(value, _Object):
        return {name: _pruned(value.once(name), kind.item_type) for name in value}
    if pa.types.is_list(kind) and isinstance(value, list):
        return [_pruned(item, kind.value_type) for item in value]
    return value


def _read(data: bytes, wire: pa.Schema, block: int) -> pa.Table:
    return arrow_json.read_json(
        io.BytesIO(data),
        read_options=arrow_json.ReadOptions(block_size=block, use_threads=len(data) > block),
        parse_options=arrow_json.ParseOptions(explicit_schema=wire, newlines_in_values=True, unexpected_field_behavior="ignore"),
    )


def _suspects(data: bytes, wire: pa.Schema, block: int) -> Sequence[int]:
    """Records that may have a number or a moment that does not fit its type: Arrow reports that there is one, but not where."""
    loose = pa.schema([pa.field(column.name, _loose_type(column.type)) for column in wire])
    try:
        table = _read(data, loose, block)
    except pa.ArrowInvalid:
        return ()
    doubtful = np.zeros(table.num_rows, dtype=bool)
    for column in wire:
        found = table[column.name]
        if pa.types.is_integer(column.type):
            values = np.nan_to_num(found.fill_null(0).to_numpy(), nan=0.5)
            doubtful |= (values != np.floor(values)) | (np.abs(values) >= min(2 ** (column.type.bit_width - 1), 2**53))
        elif pa.types.is_timestamp(column.type):
            doubtful |= ~pc.match_substring_regex(found.fill_null("2026-01-01"), _USUAL).to_numpy()
    return np.flatnonzero(doubtful).tolist()


def _loose_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind):
        return pa.float64()
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _wire_type(column: pa.Field, sample: Any) -> pa.DataType:
    types, kind = pa.types, column.type
    if types.is_timestamp(kind):
        number = pa.int64() if type(sample) is int else pa.float64() if type(sample) is float else None
        return number if number is not None and unit_of(column) is not None else kind
    if types.is_date(kind):
        return pa.string()
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, _wire_type(field, _member(sample, field.name))) for field in kind])
    return pa.list_(_wire_type(kind.value_field, None)) if types.is_list(kind) else kind


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_map(field.type) for field in kind)
    return pa.types.is_map(kind) or (pa.types.is_list(kind) and _has_map(kind.value_type))


def _encoding_problem(value: bytes) -> str | None:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8 text: {error.reason} at byte {error.start}"
    return None
