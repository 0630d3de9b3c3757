"""How the records of a topic elsewhere are encoded, as a user declares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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
    """One JSON object a record."""

    def codec(self, columns: pa.Schema) -> Codec:
        return JsonCodec(columns)


@dataclass(frozen=True)
class Plain:
    """Each record as it is, in one column of binary or string."""

    def codec(self, columns: pa.Schema) -> Codec:
        return PlainCodec(columns)


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
