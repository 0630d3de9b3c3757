"""Kafka's records as Arrow batches: the decoded value, key, time and headers, and the problem of each bad record."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.connectors.input import OP, PROBLEM, RECORD
from headrace.connectors.kafka.declaration import HEADERS, KafkaTopic
from headrace.connectors.kafka.keys import decode_key
from headrace.core.columns.schema import TIMESTAMP
from headrace.schema.codecs.decoded import Codec

_TOMBSTONE = "the record has no value (a tombstone)"


class Records:
    """Converts records to batches, with the columns that a stream declares and `_partition`, `_offset`, `_problem`, `_record`."""

    def __init__(self, source: KafkaTopic, columns: pa.Schema) -> None:
        self._source = source
        self._columns = columns
        self.schema = pa.schema(
            [
                *(column.with_nullable(True) for column in columns),
                pa.field("_partition", pa.int32()),
                pa.field("_offset", pa.int64()),
                pa.field(PROBLEM, pa.string()),
                pa.field(RECORD, pa.string()),
                *([pa.field(OP, pa.int8())] if source.table_by else []),
            ]
        )

    @cached_property
    def _codec(self) -> Codec | None:
        payload = pa.schema([column for column in self._columns if column.name not in self._source.taken])
        return self._source.format.codec(payload) if len(payload) else None

    def batch(self, messages: Sequence[Any]) -> pa.RecordBatch:
        """The records of some messages, in their order."""
        values = [message.value() for message in messages]
        columns, bad = self._decoded(values)
        if self._source.table_by:
            self._remove(messages, columns, bad)
        for name, option in self._source.taken.items():
            if name in self._columns.names:
                columns[name] = _AROUND[option](messages, self._columns.field(name).type, bad)
        problems = [(place, bad[place], _shown(messages[place])) for place in sorted(bad)]
        columns[PROBLEM] = _scattered([(place, reason) for place, reason, _ in problems], len(values))
        columns[RECORD] = _scattered([(place, record) for place, _, record in problems], len(values))
        columns["_partition"] = pa.array(np.fromiter((message.partition() for message in messages), np.int32, len(values)))
        columns["_offset"] = pa.array(np.fromiter((message.offset() for message in messages), np.int64, len(values)))
        return pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)

    def _remove(self, messages: Sequence[Any], columns: dict[str, pa.Array], bad: dict[int, str]) -> None:
        """Let tombstones remove their keys."""
        removed: dict[int, Mapping[str, Any]] = {}
        fields = [self._columns.field(name) for name in self._source.table_by if name in self._columns.names]
        for place, message in enumerate(messages):
            if message.value() is None:
                try:
                    removed[place] = decode_key(message.key() or b"", fields)
                except ValueError as error:
                    bad[place] = f"a tombstone whose key cannot be read: {error}"
                    continue
                bad.pop(place, None)
        columns[OP] = pa.array(np.array([-1 if place in removed else 1 for place in range(len(messages))], np.int8))
        if removed:
            for column in (field for field in fields if field.name in columns):
                values = columns[column.name].to_pylist()
                for place, key in removed.items():
                    values[place] = key[column.name]
                columns[column.name] = pa.array(values, column.type)

    def _decoded(self, values: list[bytes | None]) -> tuple[dict[str, pa.Array], dict[int, str]]:
        bad = {place: _TOMBSTONE for place, value in enumerate(values) if value is None}
        if self._codec is None:
            return {}, {}
        places = [place for place in range(len(values)) if place not in bad] if bad else None
        decoded = self._codec.decode([value for value in values if value is not None])
        bad |= {place if places is None else places[place]: reason for place, reason in decoded.bad.items()}
        table = decoded.table
        if bad:
            rows = np.full(len(values), -1, dtype=np.int64)
            known = decoded.places if places is None else np.array(places, dtype=np.int64)[decoded.places]
            rows[known] = np.arange(len(known))
            table = table.take(pa.array(rows, mask=rows < 0))
        return {name: _one(table[name]) for name in table.column_names}, bad


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() if column.num_chunks else pa.array([], column.type)


def _scattered(known: list[tuple[int, str]], count: int) -> pa.Array:
    if not known:
        return pa.nulls(count, pa.string())
    texts = [None] * count
    for place, text in known:
        texts[place] = text  # type: ignore[call-overload]
    return pa.array(texts, pa.string())


def _keys(messages: Sequence[Any], kind: pa.DataType, bad: dict[int, str]) -> pa.Array:
    keys = [message.key() for message in messages]
    if pa.types.is_binary(kind):
        return pa.array(keys, kind)
    try:
        return pa.array(keys, pa.binary()).cast(kind)
    except pa.ArrowInvalid:
        for place, key in enumerate(keys):
            if key is not None and _text(key) is None:
                keys[place] = None
                bad.setdefault(place, "the key is not UTF-8 text")
        return pa.array(keys, pa.binary()).cast(kind)


def _timestamps(messages: Sequence[Any], kind: pa.DataType, bad: dict[int, str]) -> pa.Array:
    stamps = np.fromiter((message.timestamp()[1] for message in messages), np.int64, len(messages))
    # Without a timestamp (a broker before 0.10), Kafka returns -1.
    return pa.array(stamps * 1000, mask=stamps < 0).cast(TIMESTAMP)


def _headers(messages: Sequence[Any], kind: pa.DataType, bad: dict[int, str]) -> pa.Array:
    return pa.array([[{"name": name, "value": value} for name, value in message.headers() or ()] for message in messages], HEADERS)


_AROUND: dict[str, Callable[[Sequence[Any], pa.DataType, dict[int, str]], pa.Array]] = {
    "key_as": _keys,
    "timestamp_as": _timestamps,
    "headers_as": _headers,
}


def _shown(message: Any) -> str:
    """A record as complete JSON; bytes that are not text are base64."""
    headers = [[name, _legible(value)] for name, value in message.headers() or ()]
    content = {"key": _legible(message.key()), "value": _legible(message.value()), "timestamp": message.timestamp()[1], "headers": headers}
    return json.dumps(content, ensure_ascii=False)


def _legible(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    text = _text(data)
    return {"base64": base64.b64encode(data).decode()} if text is None else text


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
