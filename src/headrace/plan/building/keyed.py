"""Steps that keep something for each key, built from names of columns and durations."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from headrace.core.columns.names import Names
from headrace.core.columns.schema import type_name
from headrace.core.durations import Duration, duration
from headrace.plan.building.step_place import StepPlace, refuse_twice
from headrace.plan.nodes import told_apart
from headrace.plan.steps import OPERATION, ToStream
from headrace.plan.tables.dedup import Dedup
from headrace.plan.tables.latest import ToTable
from headrace.plan.tables.meeting import Meeting
from headrace.plan.tables.previous import PREVIOUS, WithPrevious

REQUIRED = "required"


def time_to_live(after: StepPlace, ttl: Duration | None, said: str) -> timedelta | None:
    """A step that keeps something for each key declares for how long, or that it is forever."""
    if ttl == REQUIRED:
        raise after.refused(
            f"{said} of {after.node.name!r} has no ttl",
            why="its state would grow with every new key, forever",
            hint='give ttl="30 days", or ttl=None if the keys are few',
        )
    return None if ttl is None else duration(ttl)


def dedup(after: StepPlace, keys: Names, ttl: Duration | None, name: str | None) -> Dedup:
    by = after.columns_of(keys, "dedup by")
    return _dedup(after, by, ttl, f"dedup({keys!r})", after.called("dedup", name))


def distinct(after: StepPlace, ttl: Duration | None) -> Dedup:
    return _dedup(after, tuple(after.columns.names), ttl, "distinct()", after.called("distinct"))


def _dedup(after: StepPlace, by: tuple[str, ...], ttl: Duration | None, said: str, called: str) -> Dedup:
    length = time_to_live(after, ttl, said)
    if not by or length == timedelta(0):
        raise after.refused(
            f"{said} of {after.node.name!r} with ttl={ttl!r} compares nothing",
            why="no record would be a duplicate",
            hint="name a key, and a ttl above zero",
        )
    nested = next((name for name in by if pa.types.is_nested(after.columns.field(name).type)), None)
    if nested is not None:
        raise after.refused(
            f"{said} of {after.node.name!r}: {nested!r} is {type_name(after.columns.field(nested).type)}",
            why="only plain values are compared",
            hint="name columns that are no arrays, maps or structs",
        )
    return Dedup(called, after.columns, after.at, after.node, by, length)


def with_previous(after: StepPlace, columns: tuple[str, ...], by: Names, ttl: Duration | None, name: str | None) -> WithPrevious:
    names = after.columns_of(by, "with_previous by")
    length = time_to_live(after, ttl, f"with_previous(by={by!r})")
    if not names:
        raise after.refused(f"with_previous() of {after.node.name!r} has no key", hint="say whose records follow each other: by=")
    others = tuple(name for name in after.columns.names if name not in names)
    taken = after.columns_of(columns, "with_previous") if columns else others
    added = (after.columns.field(name).with_name(f"{PREVIOUS}{name}").with_nullable(True) for name in taken)
    made = pa.schema([*after.columns, *added])
    refuse_twice(made, after.at)
    return WithPrevious(after.called("previous", name), made, after.at, after.node, names, taken, length)


def to_table(after: StepPlace, key: Names, ttl: Duration | None, name: str | None) -> ToTable:
    names = after.columns_of(key, "key")
    if not names:
        raise after.refused(f"to_table() of {after.node.name!r} has no key", hint="name the columns of which it has one row each")
    undone = after.node.facts_of if OPERATION.name not in names else None
    node, length = undone or after.node, None if ttl is None else duration(ttl)
    return ToTable(after.called("table", name), node.columns, after.at, node, length, names)


def to_stream(after: StepPlace) -> ToStream:
    if not after.node.keys:
        raise after.refused(
            f"to_stream() of {after.node.name!r}: nothing tells its records apart",
            why="a record that replaces another could not be told from a new one",
            hint=told_apart(after.node) if after.node.changes else "leave it out: its records are facts",
        )
    columns = pa.schema([*after.columns, OPERATION])
    refuse_twice(columns, after.at)
    name = after.called("stream")
    before = Meeting(f"{name}.meeting", after.columns, after.at, after.node) if after.node.moves else after.node
    return ToStream(name, columns, after.at, before)
