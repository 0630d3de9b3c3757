"""Columns and their types: Spark's DDL text on the user's side, Arrow inside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from headrace.core.errors import SchemaError

TIMESTAMP = pa.timestamp("us", "UTC")

SchemaLike: TypeAlias = str | pa.Schema | Mapping[str, str | pa.DataType]

_SIMPLE: dict[str, pa.DataType] = {
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
_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|'((?:[^'\\]|\\.|'')*)'|([A-Za-z_][\w$]*)|(\d+)|([<>(),:]))")


def schema(columns: SchemaLike) -> pa.Schema:
    """An Arrow schema from Spark's DDL text, from a mapping of names to types, or from itself.

    >>> schema("url string, viewed_at timestamp").names
    ['url', 'viewed_at']
    """
    if isinstance(columns, pa.Schema):
        fields = list(columns)
    elif isinstance(columns, str):
        fields = _Ddl(columns).fields()
    else:
        fields = [pa.field(name, kind if isinstance(kind, pa.DataType) else data_type(kind)) for name, kind in columns.items()]
    names = [field.name for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(f"column {twice[0]!r} is declared twice", hint="give every column its own name")
    return pa.schema(fields)


def data_type(text: str) -> pa.DataType:
    """An Arrow type from one Spark type name.

    >>> data_type("array<int>")
    ListType(list<element: int32>)
    """
    return _Ddl(text).only_type()


def ddl(columns: pa.Schema) -> str:
    """Spark's DDL text of an Arrow schema; the inverse of `schema`.

    >>> ddl(schema("a int not null, b map<string,double>"))
    'a int NOT NULL, b map<string,double>'
    """
    return ", ".join(f"{_in_ddl(f.name)} {type_name(f.type)}{_null(f)}" for f in columns)


def type_name(kind: pa.DataType) -> str:
    """Spark's name of an Arrow type.

    >>> type_name(pa.decimal128(10, 2))
    'decimal(10,2)'
    """
    types = pa.types
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if types.is_struct(kind):
        return "struct<" + ",".join(f"{_in_ddl(f.name)}:{type_name(f.type)}{_null(f)}" for f in kind) + ">"
    if types.is_large_string(kind) or types.is_string_view(kind):
        return "string"
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return "binary"
    for name, simple in _SIMPLE.items():
        if simple.equals(kind):
            return name
    raise SchemaError(f"Arrow type {kind} has no Spark type", hint=f"use one of {', '.join(sorted(_SIMPLE))}, decimal, array, map, struct")


def quoted(name: str) -> str:
    """A name of a column as Spark SQL takes it for one, whatever is in it.

    >>> quoted("a `b` c")
    '`a ``b`` c`'
    """
    return "`" + name.replace("`", "``") + "`"


def _null(field: pa.Field) -> str:
    return "" if field.nullable else " NOT NULL"


def _in_ddl(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quoted(name)


class _Ddl:
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
        kind = self._type()
        self._end()
        return kind

    def _field(self, separator: str | None) -> pa.Field:
        kind, name = self._token()
        if kind not in ("word", "name"):
            raise self._wrong(f"expected a column name, found {name!r}")
        if separator:
            self._take(separator)
        data = self._type()
        nullable = True
        if self._take("not"):
            self._expect("null")
            nullable = False
        if self._take("comment"):
            self._token()
        return pa.field(name, data, nullable=nullable)

    def _type(self) -> pa.DataType:
        _, word = self._token()
        name = word.lower()
        if name in ("decimal", "dec", "numeric"):
            return self._decimal()
        if name == "array":
            self._expect("<")
            element = self._type()
            self._expect(">")
            return pa.list_(pa.field("element", element))
        if name == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            value = self._type()
            self._expect(">")
            return pa.map_(key, value)
        if name == "struct":
            self._expect("<")
            fields = [self._field(separator=":")]
            while self._take(","):
                fields.append(self._field(separator=":"))
            self._expect(">")
            return pa.struct(fields)
        if name not in _SIMPLE:
            raise self._wrong(f"{word!r} is not a type")
        if name in ("varchar", "char") and self._peek("("):
            self._arguments()
        return _SIMPLE[name]

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

    def _wrong(self, what: str) -> SchemaError:
        return SchemaError(f"cannot read the columns {self._text!r}: {what}", hint='write Spark DDL: "url string, viewed_at timestamp"')
