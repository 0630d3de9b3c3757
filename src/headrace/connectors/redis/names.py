"""The names that rows have in Redis: the values of their keys as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl

from headrace.schema.legible import as_json, floats_as_text

# The name of a null key, and the prefix of our own names: no other key has or begins with these.
_NULL, OWN = "%null", "headrace:"


def names_of(keys: pl.DataFrame) -> Iterator[str]:
    """The identity of each row, as text."""
    for text in as_json(keys.select(floats_as_text(name, kind) for name, kind in keys.schema.items())).to_list():
        yield _name(list(json.loads(text).values()))


def text_of(value: Any) -> str:
    """A value of JSON as a field of a hash has it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _name(parts: list[Any]) -> str:
    """A key as text that is unique to it: a single part as it is, several joined by colons.

    >>> [_name([part]) for part in ("ada", 7, "null", None, "%", "headrace:x")]
    ['ada', '7', 'null', '%null', '%%', '%headrace:x']
    >>> _name(["a:b", 50, None]), _name([None, "%null"])
    ('a%3Ab:50:%null', '%%null:%25null')
    """
    if parts == [None]:
        return _NULL
    if len(parts) == 1:
        name = text_of(parts[0])
    else:
        name = ":".join(_NULL if part is None else text_of(part).replace("%", "%25").replace(":", "%3A") for part in parts)
    return f"%{name}" if name.startswith(("%", OWN)) else name
