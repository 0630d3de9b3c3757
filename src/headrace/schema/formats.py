"""Formats of records in topics elsewhere, as a user declares them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from headrace.core.errors import SettingsError
from headrace.schema.codecs.decoded import Codec
from headrace.schema.codecs.json import JsonCodec
from headrace.schema.codecs.plain import PlainCodec


class Format(Protocol):
    """Makes the codec for the columns that a stream declares."""

    def codec(self, columns: pa.Schema) -> Codec: ...


@dataclass(frozen=True)
class Json:
    """One JSON object for each record."""

    def codec(self, columns: pa.Schema) -> Codec:
        return JsonCodec(columns)


@dataclass(frozen=True)
class Plain:
    """Each record as it is, in one column of binary or string."""

    def codec(self, columns: pa.Schema) -> Codec:
        return PlainCodec(columns)


@dataclass(frozen=True)
class Avro:
    """Avro records; see `avro`."""

    schemas: tuple[tuple[int | None, str], ...]

    def codec(self, columns: pa.Schema) -> Codec:
        from headrace.schema.codecs.avro import AvroCodec

        return AvroCodec(columns, dict(self.schemas))


@dataclass(frozen=True)
class Protobuf:
    """Protobuf messages; see `protobuf`."""

    files: bytes = field(repr=False)
    message: str
    framed: bool = False

    def codec(self, columns: pa.Schema) -> Codec:
        from headrace.schema.codecs.protobuf import ProtobufCodec

        return ProtobufCodec(columns, self.files, self.message, framed=self.framed)


def avro(schema: str | Mapping[str, Any] | None = None, *, schemas: Mapping[int, str | Mapping[str, Any]] | None = None) -> Avro:
    """Avro records of one `schema`; or of several `schemas`, by the id that a registry's clients write before each record.

    Columns are found by name; a column that one of several schemas does not have is null in its records.

    >>> hit = {"type": "record", "name": "Hit", "fields": [{"name": "url", "type": "string"}]}
    >>> avro(hit).codec(pa.schema({"url": pa.string()})).columns
    url: string
    """
    if (schema is None) == (schemas is None):
        raise SettingsError("an Avro format needs a schema, or schemas by number", hint="give one of the two")
    given: dict[int | None, Any] = {None: schema} if schema is not None else dict((schemas or {}).items())
    return Avro(tuple((number, one if isinstance(one, str) else json.dumps(one)) for number, one in given.items()))


def protobuf(message: Any, *, files: bytes | None = None, framed: bool = False) -> Protobuf:
    """Protobuf messages of a generated class; or of a type by its full name, with the `files` that protoc writes for it.

    The files come from `protoc --include_imports --descriptor_set_out=FILE`. `framed` messages have the registries' prefix in front.
    """
    if isinstance(message, str):
        if files is None:
            raise SettingsError(f"the name {message!r} alone does not tell its fields", hint="give files=, or the generated class")
        return Protobuf(files, message, framed)
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    found = FileDescriptorSet()
    _collect(message.DESCRIPTOR.file, found, set())
    return Protobuf(found.SerializeToString(), message.DESCRIPTOR.full_name, framed)


def _collect(file: Any, into: Any, known: set[str]) -> None:
    """A file, preceded by those that it imports."""
    if file.name not in known:
        known.add(file.name)
        for other in file.dependencies:
            _collect(other, into, known)
        file.CopyToProto(into.file.add())


NAMED: dict[str, Format] = {"json": Json(), "bytes": Plain()}


def format_of(given: str | Format) -> Format:
    """A format by its name, or as it is.

    >>> format_of("json")
    Json()
    """
    if not isinstance(given, str):
        return given
    if given not in NAMED:
        raise SettingsError(f"format {given!r} is not known", hint=f"{', '.join(map(repr, NAMED))}, hr.avro(...) or hr.protobuf(...)")
    return NAMED[given]
