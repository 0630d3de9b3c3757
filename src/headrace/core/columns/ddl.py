"""Spark's DDL text of columns, read into Arrow fields."""

from __future__ import annotations

import re

import pyarrow as pa

from headrace.core.errors import SchemaError
from headrace.core.nearest import nearest

TIMESTAMP = pa.timestamp("us", "UTC")
# Microseconds in each unit in which a number may give a timestamp.
UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(), "bool": pa.bool_(),
    "tinyint": pa.int8(), "byte": pa.int8(),
    "smallint": pa.int16(), "short": pa.int16(),
    "int": pa.int32(), "integer": pa.int32(),
    "bigint": pa.int64(), "long": pa.int64(),
    "float": pa.float32(), "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(), "varchar": pa.string(), "char": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP, "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
UNIT = b"unit"
AS_TEXT = 'write Spark DDL: "url string, viewed_at timestamp"'
_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|'((?:[^'\\]|\\.|'')*)'|([A-Za-z_][\w$]*)|(\d+)|([<>(),:]))")


class Ddl:
    """A reader of Spark's column list grammar: `name type [not null] [comment '...'], ...`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            found = _TOKEN.match(stripped, position)
            if found is None:
                raise self._wrong(f"cannot read {stripped[position : position + 20]!r}")
            quoted, comment, word, number, sign = found.groups()
            if quoted is not None:
                self._tokens.append(("name", quoted.replace("``", "`")))
            elif comment is not None:
                self._tokens.append(("text", comment))
            else:
                self._tokens.append(("word", word) if word else ("number", number) if number else ("sign", sign))
            position = found.end()
        self._next = 0

    def fields(self) -> list[pa.Field]:
        fields = [self._field(separator=None)]
        while self._take(","):
            fields.append(self._field(separator=None))
        self._end()
        return fields

    def only_type(self) -> pa.DataType:
        return self.only_field("").type

    def only_field(self, name: str) -> pa.Field:
        """A column of one type, under a name."""
        found = self._typed(name)
        self._end()
        return found

    def _field(self, separator: str | None) -> pa.Field:
        kind, name = self._token()
        if kind not in ("word", "name"):
            raise self._wrong(f"expected a column name, found {name!r}")
        if separator:
            self._take(separator)
        found = self._typed(name)
        if self._take("not"):
            self._expect("null")
            found = found.with_nullable(False)
        if self._take("comment"):
            self._token()
        return found

    def _typed(self, name: str) -> pa.Field:
        """A type, under the name of what has it."""
        kind = self._type()
        if not pa.types.is_timestamp(kind) or not self._take("("):
            return pa.field(name, kind)
        _, unit = self._token()
        if unit not in UNITS:
            raise self._wrong(f"{unit!r} is not a unit of a timestamp: it is s, ms or us")
        self._expect(")")
        return pa.field(name, kind, metadata={UNIT: unit.encode()})

    def _type(self) -> pa.DataType:
        _, word = self._token()
        name = word.lower()
        if name in ("decimal", "dec", "numeric"):
            return self._decimal()
        if name == "array":
            self._expect("<")
            element = self._typed("element")
            self._expect(">")
            return pa.list_(element)
        if name == "map":
            self._expect("<")
            key = self._typed("key").with_nullable(False)
            self._expect(",")
            value = self._typed("value")
            self._expect(">")
            return pa.map_(key, value)
        if name == "struct":
            self._expect("<")
            fields = [self._field(separator=":")]
            while self._take(","):
                fields.append(self._field(separator=":"))
            self._expect(">")
            return pa.struct(fields)
        if name not in SIMPLE:
            near = nearest(name, [*SIMPLE, "decimal", "array", "map", "struct"])
            raise self._wrong(f"{word!r} is not a type", (f"did you mean {near!r}? " if near else "") + AS_TEXT)
        if name in ("varchar", "char") and self._peek("("):
            self._arguments()
        return SIMPLE[name]

    def _decimal(self) -> pa.DataType:
        precision, scale, *more = [*self._arguments(), 0] if self._peek("(") else (10, 0)
        if more[1:] or not 1 <= precision <= 38 or scale > precision:
            raise self._wrong("a decimal has a precision from 1 to 38 and a scale up to it, as in decimal(10,2)")
        return pa.decimal128(precision, scale)

    def _arguments(self) -> list[int]:
        self._expect("(")
        numbers = [self._number()]
        while self._take(","):
            numbers.append(self._number())
        self._expect(")")
        return numbers

    def _number(self) -> int:
        kind, text = self._token()
        if kind != "number":
            raise self._wrong(f"expected a number, found {text!r}")
        return int(text)

    def _token(self) -> tuple[str, str]:
        if self._next >= len(self._tokens):
            raise self._wrong("it ends too early")
        self._next += 1
        return self._tokens[self._next - 1]

    def _peek(self, text: str) -> bool:
        return self._next < len(self._tokens) and self._tokens[self._next][1].lower() == text and self._tokens[self._next][0] != "name"

    def _take(self, text: str) -> bool:
        found = self._peek(text)
        self._next += found
        return found

    def _expect(self, text: str) -> None:
        if not self._take(text):
            found = self._tokens[self._next][1] if self._next < len(self._tokens) else "the end"
            raise self._wrong(f"expected {text!r}, found {found!r}")

    def _end(self) -> None:
        if self._next < len(self._tokens):
            raise self._wrong(f"{self._tokens[self._next][1]!r} is left over")

    def _wrong(self, what: str, hint: str = AS_TEXT) -> SchemaError:
        return SchemaError(f"cannot read the columns {self._text!r}: {what}", hint=hint)
