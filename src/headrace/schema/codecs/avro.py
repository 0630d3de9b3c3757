"""Avro records as columns, field by field over all records at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.core.columns.schema import declared_type
from headrace.core.errors import SchemaError
from headrace.schema.codecs.avro_types import AvroRecord, Types
from headrace.schema.codecs.cursors import RecordCursors
from headrace.schema.codecs.decoded import Decoded, gathered, made, taken

_FRAME = 5
_WIDER = {
    (pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64()),
    (pa.string(), pa.binary()),
}  # fmt: skip


class AvroCodec:
    """Decodes records of one schema; or of several, each by the number in front of it (a zero byte and four more).

    >>> codec = AvroCodec(pa.schema({"n": pa.int64()}), {None: {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}})
    >>> decoded = codec.decode([b"\\x02", b"", b"\\x04\\x00"])
    >>> decoded.table["n"].to_pylist(), decoded.bad
    ([1], {1: 'it ends inside a number', 2: 'bytes are left over after its last field'})
    """

    def __init__(self, columns: pa.Schema, schemas: Mapping[int | None, Any]) -> None:
        self.columns = columns
        self._nullable = pa.schema([column.with_nullable(True) for column in columns])
        self._records = {number: _record(schema) for number, schema in schemas.items()}
        known = [dict(record.fields) for record in self._records.values()]
        for column in columns:
            fields = [fields[column.name] for fields in known if column.name in fields]
            if not fields:
                raise SchemaError(f"no Avro schema has a field {column.name!r}", hint=f"fields: {', '.join(known[0]) if known else 'none'}")
            for reader in fields:
                if not taken(column, reader.kind) and (reader.kind, column.type) not in _WIDER:
                    raise SchemaError(
                        f"column {column.name!r} is declared as {declared_type(column)}, its Avro field is {reader.kind}",
                        hint="declare it so that every value fits: a number as a time says its unit, timestamp(ms); a union needs null "
                        "and one type",
                    )

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """The records as rows."""
        if None in self._records:
            table, places, bad = self._of_one(self._records[None], values)
            return gathered(self.columns, [(places, table)], bad)
        numbers = [int.from_bytes(value[1:_FRAME], "big") if value[:1] == b"\0" and len(value) >= _FRAME else None for value in values]
        problem = "no schema number in front of it (a zero byte and four more)"
        bad = {place: problem for place, number in enumerate(numbers) if number is None}
        pieces = []
        for number in sorted({number for number in numbers if number is not None}):
            mine = np.array([place for place, other in enumerate(numbers) if other == number], dtype=np.int64)
            if number not in self._records:
                bad |= dict.fromkeys(mine.tolist(), f"its schema number {number} is not known")
                continue
            table, places, problems = self._of_one(self._records[number], [values[place][_FRAME:] for place in mine])
            pieces.append((mine[places], table))
            bad |= {int(mine[place]): reason for place, reason in problems.items()}
        return gathered(self.columns, pieces, bad)

    def _of_one(self, record: AvroRecord, values: Sequence[bytes]) -> tuple[pa.Table, np.ndarray, dict[int, str]]:
        cursors = RecordCursors(values)
        found = record.columns(cursors, np.arange(len(values)))
        bad = cursors.problems()
        sound, arrays = cursors.sound, []
        for column in self._nullable:
            array, unfit = made(found[column.name], column) if column.name in found else (pa.nulls(len(values), column.type), {})
            arrays.append(array)
            bad = unfit | bad
            sound = sound & ~np.isin(np.arange(len(values)), list(unfit))
        table = pa.table(arrays, schema=self._nullable)
        return (table.filter(pa.array(sound)) if bad else table), np.flatnonzero(sound), bad


def _record(schema: Any) -> AvroRecord:
    try:
        parsed = json.loads(schema) if isinstance(schema, str | bytes) else schema
    except ValueError as error:
        raise SchemaError(f"the Avro schema is not JSON: {error}") from error
    reader = Types().reader(parsed)
    if not isinstance(reader, AvroRecord):
        raise SchemaError("the Avro schema of a stream is a record", hint='{"type": "record", "name": ..., "fields": [...]}')
    return reader
