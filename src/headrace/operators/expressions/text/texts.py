"""Functions on strings, counted in code points as Spark counts them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from headrace.operators.expressions.parts import CompiledTerm, Made, all_of, fault, in_turn, operation, special
from headrace.operators.expressions.text import letters
from headrace.plan.expressions.terms import Apply

_LAST = 2**31 - 1


def _whole(value: pl.Expr) -> pl.Expr:
    return value.cast(pl.Int64)


def _given(parts: Sequence[CompiledTerm], value: pl.Expr) -> pl.Expr:
    """The value where none of the parts is null: polars treats a null length or set of characters as the default."""
    present = [part.present for part in parts if part.present is not None]
    return pl.when(pl.all_horizontal(present)).then(value) if present else value


@operation("upper")
def upper(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return parts[0].value.str.to_uppercase()


@operation("lower")
def lower(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return letters.lower(parts[0].value)


@operation("reverse")
def reverse(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    # str.reverse keeps accents with their letters; Spark reverses code points.
    return parts[0].value.str.split("").list.reverse().list.join("")


@operation("trim", "ltrim", "rtrim")
def trim(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    text = parts[0].value.str
    cut = {"trim": text.strip_chars, "ltrim": text.strip_chars_start, "rtrim": text.strip_chars_end}[term.operation]
    return cut(" ") if len(parts) == 1 else _given(parts[1:], cut(parts[1].value))


@operation("length")
def length(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return parts[0].value.str.len_chars().cast(pl.Int32)


@operation("octet_length", "bit_length")
def byte_length(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return parts[0].value.str.len_bytes().cast(pl.Int32) * (8 if term.operation == "bit_length" else 1)


@operation("ascii")
def ascii_code(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    """The number of the first character, assembled from its UTF-8 bytes."""
    data = parts[0].value.cast(pl.Binary)
    first, second, third, fourth = (data.bin.get(place, null_on_oob=True).cast(pl.Int32) for place in range(4))
    return (
        pl.when(parts[0].value.str.len_bytes() == 0).then(0)
        .when(first < 0x80).then(first)
        .when(first < 0xE0).then((first - 0xC0) * 64 + (second - 0x80))
        .when(first < 0xF0).then((first - 0xE0) * 4096 + (second - 0x80) * 64 + (third - 0x80))
        .otherwise((first - 0xF0) * 262144 + (second - 0x80) * 4096 + (third - 0x80) * 64 + (fourth - 0x80))
    )  # fmt: skip


@operation("substring")
def substring(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    """From the first character as 1, from the end when negative; 0 counts as 1."""
    text, start = parts[0].value, parts[1].value
    first, count = parts[1].constant, parts[2].constant if len(parts) == 3 else _LAST
    if isinstance(first, int) and isinstance(count, int) and first >= 0:
        return text.str.slice(max(first - 1, 0), max(count, 0))
    long = _whole(text.str.len_chars())
    begin = pl.when(_whole(start) > 0).then(_whole(start) - 1).when(_whole(start) < 0).then(long + _whole(start)).otherwise(0)
    end = begin + (_whole(parts[2].value) if len(parts) == 3 else _LAST)
    return _given(parts[1:], text.str.slice(begin.clip(0), (end - begin.clip(0)).clip(0)))


@operation("left", "right")
def side(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    text, count = parts[0].value, _whole(parts[1].value).clip(0)
    if term.operation == "left":
        return _given(parts[1:], text.str.slice(0, count))
    long = _whole(text.str.len_chars())
    return _given(parts[1:], text.str.slice((long - count).clip(0)))


@operation("repeat")
def repeat(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    text, count = parts[0].value, parts[1].value.clip(0)
    return _given(parts, text.repeat_by(count).list.join(""))


def _place(text: pl.Expr, part: pl.Expr) -> pl.Expr:
    """The place of a part in characters, from 1; 0 when it is not found."""
    at = text.str.find(part, literal=True)
    before = text.cast(pl.Binary).bin.head(at).cast(pl.String).str.len_chars().cast(pl.Int32)
    return pl.when(text.is_null() | part.is_null()).then(None).otherwise((before + 1).fill_null(0))


@operation("instr")
def instr(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return _place(parts[0].value, parts[1].value)


@special("locate")
def locate(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    """Like instr from a place on; a place before the first returns 0, and so does a null place."""
    text, part, start = (one.value for one in parts)
    rest = text.str.slice((_whole(start) - 1).clip(0))
    found = _place(rest, part)
    value = (
        pl.when(start.is_null()).then(0)
        .when(text.is_null() | part.is_null()).then(None)
        .when(start < 1).then(0)
        .when(part.str.len_bytes() == 0).then(1)
        .when(found > 0).then(found + start - 1)
        .otherwise(0)
    )  # fmt: skip
    return CompiledTerm(term, value.cast(pl.Int32), all_of(parts))


@operation("replace")
def replace(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    old, new = (str(option) for option in term.options)
    return parts[0].value.str.replace_all(old, new, literal=True) if old else parts[0].value


@operation("translate")
def translate(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    source, target = (str(option) for option in term.options)
    table: dict[str, str] = {}
    for place, sign in enumerate(source):
        table.setdefault(sign, target[place] if place < len(target) else "")
    return parts[0].value.str.replace_many(list(table), list(table.values())) if table else parts[0].value


@operation("split_part")
def split_part(term: Apply, parts: tuple[CompiledTerm, ...]) -> Made:
    text, separator, number = (part.value for part in parts)
    pieces = pl.when(separator.str.len_bytes() > 0).then(text.str.split(separator)).otherwise(pl.concat_list([text]))
    at = pl.when(number > 0).then(_whole(number) - 1).otherwise(_whole(number))
    found = pieces.list.get(at, null_on_oob=True).fill_null("")
    given = text.is_not_null() & separator.is_not_null() & number.is_not_null()
    return pl.when(given).then(found), [fault(given & (number == 0), "part 0 asked for", term)]


@operation("split")
def split(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    separator, limit = str(term.options[0]), int(str(term.options[1]))
    text = parts[0].value
    if limit <= 0:
        return text.str.split(separator)
    if limit == 1:
        return pl.when(text.is_not_null()).then(pl.concat_list([text]))
    pieces = text.str.split(separator)
    head = pieces.list.head(limit - 1)
    tail = pieces.list.slice(limit - 1).list.join(separator)
    return pl.when(pieces.list.len() <= limit).then(pieces).otherwise(pl.concat_list([head, tail]))


@operation("startswith", "endswith", "contains")
def holds(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    text, part = parts[0].value, parts[1].value
    if term.operation == "startswith":
        return text.str.starts_with(part)
    return text.str.ends_with(part) if term.operation == "endswith" else text.str.contains(part, literal=True)


@operation("lpad", "rpad")
def pad(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    width, padding = max(0, int(str(term.options[0]))), str(term.options[1])
    text = parts[0].value
    cut = text.str.slice(0, width)
    if not padding:
        return cut
    filling = pl.lit((padding * (width // len(padding) + 1))[:width])
    missing = (width - _whole(text.str.len_chars())).clip(0)
    fill = filling.str.slice(0, missing)
    return pl.concat_str([fill, cut]) if term.operation == "lpad" else pl.concat_str([cut, fill])


@special("concat")
def concat(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    return CompiledTerm(term, pl.concat_str([part.value for part in parts]), in_turn(parts))


@special("concat_ws")
def concat_ws(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    separator, *texts = parts
    if not texts:
        return CompiledTerm(term, pl.when(separator.value.is_not_null()).then(pl.lit("")), all_of(parts))
    if isinstance(separator.constant, str):
        joined = pl.concat_str([text.value for text in texts], separator=separator.constant, ignore_nulls=True)
        return CompiledTerm(term, joined, all_of(parts))
    joined = pl.concat_list([text.value for text in texts]).list.drop_nulls().list.join(separator.value)
    return CompiledTerm(term, pl.when(separator.value.is_not_null()).then(joined), all_of(parts))
