"""Protobuf messages as columns: parsed one by one by the library, then converted column by column.

Fields that were not set are null where Protobuf can tell (`optional`, messages), else the default. An enum is its name, or its number if it
has no name; `google.protobuf.Timestamp` is a timestamp, an unsigned 64-bit number a `decimal(20,0)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError

from headrace.core.columns.schema import TIMESTAMP, declared_type, type_name
from headrace.core.errors import SchemaError
from headrace.schema.codecs.decoded import Decoded, gathered, made, taken

_MOMENT = "google.protobuf.Timestamp"
_FRAME = 5
# By the numbers of `FieldDescriptor.TYPE_...`.
_KINDS: dict[int, pa.DataType] = {
    1: pa.float64(), 2: pa.float32(), 3: pa.int64(), 4: pa.decimal128(20, 0), 5: pa.int32(), 6: pa.decimal128(20, 0), 7: pa.int64(),
    8: pa.bool_(), 9: pa.string(), 12: pa.binary(), 13: pa.int64(), 14: pa.string(), 15: pa.int32(), 16: pa.int64(), 17: pa.int32(),
    18: pa.int64(),
}  # fmt: skip
_WIDER = {(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64())}


class ProtobufCodec:
    """Decodes messages of one type; `framed` ones have a schema number and the path to their type in front, as registries write them."""

    def __init__(self, columns: pa.Schema, files: bytes, message: str, *, framed: bool = False) -> None:
        self.columns, self._framed = columns, framed
        self._message = _message_class(files, message)
        self._fields = {field.name: _Field(field) for field in self._message.DESCRIPTOR.fields}
        for column in columns:
            if column.name not in self._fields:
                raise SchemaError(f"message {message} has no field {column.name!r}", hint=f"fields: {', '.join(self._fields)}")
            kind = self._fields[column.name].kind
            if not taken(column, kind) and (kind, column.type) not in _WIDER:
                raise SchemaError(
                    f"column {column.name!r} is declared as {declared_type(column)}, its field is {type_name(kind)}",
                    hint="declare it so that every value fits: a number as a time says its unit, timestamp(ms)",
                )

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """The records as rows."""
        messages, places, bad = [], [], {}
        for place, value in enumerate(values):
            try:
                messages.append(self._message.FromString(_unframed(value) if self._framed else value))
                places.append(place)
            except (DecodeError, ValueError) as error:
                bad[place] = f"not a message {self._message.DESCRIPTOR.full_name}: {error}"
        nullable, numbers, arrays = pa.schema([column.with_nullable(True) for column in self.columns]), np.array(places, dtype=np.int64), []
        sound = np.ones(len(places), dtype=bool)
        for column in nullable:
            array, unfit = made(self._fields[column.name].of(messages), column)
            arrays.append(array)
            sound[list(unfit)] = False
            bad = {places[place]: reason for place, reason in unfit.items()} | bad
        table = pa.table(arrays, schema=nullable)
        return gathered(self.columns, [(numbers[sound], table if sound.all() else table.filter(pa.array(sound)))], bad)


class _Field:
    """One field of a message as a column."""

    def __init__(self, field: Any, above: tuple[str, ...] = ()) -> None:
        self._field, self.name = field, field.name
        self._inner = field.message_type
        if self._inner is not None and self._inner.full_name in above:
            raise SchemaError(f"message {self._inner.full_name} contains itself: columns have no recursion")
        self._above = above

    @cached_property
    def _parts(self) -> list[_Field]:
        return [_Field(part, (*self._above, self._inner.full_name)) for part in self._inner.fields]

    @cached_property
    def _map(self) -> bool:
        return bool(self._inner is not None and self._inner.GetOptions().map_entry)

    @cached_property
    def kind(self) -> pa.DataType:
        """The Arrow type of the column."""
        if self._map:
            return pa.map_(self._parts[0].kind, self._parts[1].kind)
        return pa.list_(pa.field("element", self._one)) if self._field.is_repeated else self._one

    @cached_property
    def _one(self) -> pa.DataType:
        if self._inner is None:
            return _KINDS[self._field.type]
        if self._inner.full_name == _MOMENT:
            return TIMESTAMP
        return pa.struct([pa.field(part.name, part.kind) for part in self._parts])

    def of(self, messages: Sequence[Any]) -> pa.Array:
        """The field of each message."""
        found = list(map(attrgetter(self._field.name), messages))
        if self._map:
            offsets = _offsets(found)
            keys = self._parts[0].values([key for one in found for key in one])
            return pa.MapArray.from_arrays(offsets, keys, self._parts[1].values([one[key] for one in found for key in one]))
        if self._field.is_repeated:
            return pa.ListArray.from_arrays(_offsets(found), self.values([item for one in found for item in one]), type=self.kind)
        unset = [not message.HasField(self._field.name) for message in messages] if self._field.has_presence else None
        return self.values(found, unset)

    def values(self, found: list[Any], unset: list[bool] | None = None) -> pa.Array:
        """Values, or messages, as an array; null where `unset` is true."""
        mask = np.array(unset, dtype=bool) if unset is not None else None
        if self._inner is not None and self._inner.full_name != _MOMENT:
            parts = [part.of(found) for part in self._parts]
            return pa.StructArray.from_arrays(parts, fields=list(self._one), mask=pa.array(mask) if mask is not None else None)
        if self._inner is not None:
            moments = [one.seconds * 1_000_000 + one.nanos // 1000 for one in found]
            return pa.array(moments, pa.int64(), mask=mask).cast(TIMESTAMP)
        if self._field.enum_type is not None:
            names = {number: value.name for number, value in self._field.enum_type.values_by_number.items()}
            found = [names.get(number) or str(number) for number in found]
        return pa.array(found, self._one, mask=mask)


def _offsets(found: list[Any]) -> pa.Array:
    return pa.array(np.cumsum([0, *map(len, found)]).astype(np.int32))


def _message_class(files: bytes, message: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in FileDescriptorSet.FromString(files).file:
            pool.Add(file)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(message))
    except (KeyError, TypeError, DecodeError) as error:
        raise SchemaError(
            f"the descriptors have no message {message!r}: {error}", hint="make them with protoc --include_imports --descriptor_set_out"
        ) from error


def _unframed(value: bytes) -> bytes:
    """A message without the schema number and the path to its type in front."""
    if value[:1] != b"\0" or len(value) <= _FRAME:
        raise ValueError("no schema number in front of it (a zero byte and four more)")
    count, place = _zigzag(value, _FRAME)
    for _ in range(count):
        _, place = _zigzag(value, place)
    return value[place:]


def _zigzag(value: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while place < len(value):
        number |= (value[place] & 0x7F) << shift
        shift, place = shift + 7, place + 1
        if value[place - 1] < 0x80:
            return (number >> 1) ^ -(number & 1), place
    raise ValueError("it ends before the message")
