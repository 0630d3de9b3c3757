"""The rule about a key that a view does not have: similar ones, or a key of another type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from urllib.parse import unquote

import pyarrow as pa

from headrace.core.columns.schema import schema, type_name
from headrace.core.errors import PlanError
from headrace.jobs.facts.description import DescribedOutput
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.ops.why.facts import JobFacts
from headrace.ops.why.finding import Finding
from headrace.schema.values import text_reader


def wrong_key(facts: JobFacts) -> Iterator[Finding]:
    """The requested key is not in a view."""
    if facts.key is None or facts.log is None:
        return
    for output in facts.outputs:
        if output.kind == "view":
            yield from _judged(facts.log, output, facts.key)


def parsed_key(view: str, key: Sequence[str], columns: pa.Schema, text: str) -> dict[str, pa.Scalar]:
    """The values of a key that is written with / between its parts; fewer parts are the first columns of the key."""
    parts = _parts(key, text)
    if len(parts) > len(key):
        raise PlanError(
            f"key {text!r} has {len(parts)} parts, and the key of view {view!r} has {len(key)}: {', '.join(key)}",
            hint="write a slash within a part as %2F",
        )
    found = {}
    for name, part in zip(key, parts, strict=False):
        kind = columns.field(name).type
        try:
            found[name] = _value(part, kind)
        except ValueError as error:
            raise PlanError(f"{part!r} is no {type_name(kind)}, and that is the type of {name!r}, a key column of view {view!r}") from error
    return found


def _parts(key: Sequence[str], text: str) -> list[str]:
    """The parts of a key of several columns, percent-encoded as in a path; a key of one column is the text as it is."""
    return [unquote(part) for part in text.split("/")] if len(key) > 1 else [text]


def _value(part: str, kind: pa.DataType) -> pa.Scalar:
    """A part of a key as the filters of a server read it: a moment without a zone is in UTC, and nothing is null unless it is text."""
    return pa.scalar(text_reader(pa.field("key", kind))(part), kind)


def _judged(log: Log, view: DescribedOutput, text: str) -> Iterator[Finding]:
    parts = _parts(view.key, text)
    columns = view.key[: len(parts)]
    named = ", ".join(view.key)
    if len(parts) > len(view.key):
        fact = f"key {text!r} has {len(parts)} parts, and the key of view {view.name!r} has {len(view.key)}: {named}"
        yield Finding(
            "wrong key",
            fact,
            remedy=f"give one part for each of {named}, with / between them, and a slash within one as %2F",
            step=view.name,
        )
        return
    types = [schema(view.columns).field(name).type for name in columns]
    wanted = []
    for name, part, kind in zip(columns, parts, types, strict=True):
        try:
            wanted.append(_value(part, kind))
        except ValueError:
            shown = type_name(kind)
            fact = f"{part!r} is no {shown}, and that is the type of {name!r}, a key column of view {view.name!r}"
            yield Finding("wrong key", fact, why="a value of another type equals none", remedy=f"give a {shown}", step=view.name)
            return
    try:
        rows = log.snapshot(view.topic).table.select(list(columns))
    except UnknownTopic:
        rows = schema(view.columns).empty_table().select(list(columns))
    found = set(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    if tuple(value.as_py() for value in wanted) in found:
        return
    near = _near(text, found)
    count = f"the view has {len(found):,} keys, and none is near" if found else "the view has no row at all"
    known = f"near ones: {', '.join(near)}" if near else count
    yield Finding(
        "wrong key",
        f"view {view.name!r} has no row with key {text!r}",
        why="no record made one, or a later one removed it; keys are compared exactly, with case and spaces",
        remedy=f"{known}; headrace query shows the rows of {view.name}",
        step=view.name,
    )


def _near(text: str, found: set[tuple[object, ...]]) -> list[str]:
    known = {"/".join(_written(part) if len(key) > 1 else str(part) for part in key): key for key in found}
    folded = {shown.strip().casefold(): shown for shown in known}
    return [repr(folded[match]) for match in get_close_matches(text.strip().strip("\"'").casefold(), folded, n=3)]


def _written(part: object) -> str:
    """A part of a key as `_parts` reads it."""
    return str(part).replace("%", "%25").replace("/", "%2F")
