"""Records that are not decoded: their bytes, or their text, as the only column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.core.columns.schema import ddl
from headrace.core.errors import SchemaError
from headrace.schema.codecs.decoded import Decoded


class PlainCodec:
    """Returns each record as it is; a column of text accepts UTF-8 only.

    >>> PlainCodec(pa.schema({"line": pa.string()})).decode([b"a", b"\\xff"]).bad
    {1: 'not UTF-8 text'}
    """

    def __init__(self, columns: pa.Schema) -> None:
        if len(columns) != 1 or columns.field(0).type not in (pa.binary(), pa.string()):
            raise SchemaError(f"plain records are one column of binary or string, not {ddl(columns)}", hint="declare one, or name a format")
        self.columns = columns

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """The records as rows."""
        places = np.arange(len(values), dtype=np.int64)
        raw = pa.array(values, pa.binary())
        try:
            return Decoded(pa.table([raw.cast(self.columns.field(0).type)], schema=self.columns), places, {})
        except pa.ArrowInvalid:
            good = np.array([_text(value) for value in values])
            kept = raw.filter(pa.array(good)).cast(pa.string())
            return Decoded(pa.table([kept], schema=self.columns), places[good], dict.fromkeys(places[~good].tolist(), "not UTF-8 text"))


def _text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
