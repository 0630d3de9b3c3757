"""The arguments of `stream.lookup(...)`, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace.api.arguments import Namer
from headrace.core.columns.names import listed
from headrace.core.columns.schema import SchemaLike, type_name
from headrace.core.columns.schema import schema as schema_of
from headrace.core.counts import counts
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.plan.building.functions import refuse_arity
from headrace.plan.joins.join import LEFT, On
from headrace.plan.joins.remote_lookup import Answering, Question, RemoteFunction, RemoteLookup
from headrace.plan.nodes import Node, column


@dataclass(frozen=True)
class Calls:
    """How another system is asked, as the user wrote it."""

    timeout: Duration
    parallel: int
    batch: int
    retries: int
    backoff: Duration


@dataclass(frozen=True)
class Wanted:
    """What is asked for, as the user wrote it."""

    function: Any
    on: On
    returns: SchemaLike
    how: str
    cache: Duration
    calls: Calls


def looked_up(node: Node, namer: Namer, wanted: Wanted, name: str | None, at: str | None) -> RemoteLookup:
    """The step that asks another system for the rows of a node's keys."""
    said = f"lookup(...) of {node.name!r}"
    if not isinstance(wanted.function, Answering):
        refuse_arity(wanted.function, ("keys",), said, at)
    on, returns = _pairs(wanted.on, node, at), schema_of(wanted.returns)
    _refuse_names(node, on, returns, at)
    added = [one.with_nullable(True) if wanted.how == LEFT else one for one in returns]
    columns = pa.schema([*node.columns, *added])
    made = namer.step_name(f"{node.name}.lookup", name)
    kept = _length(wanted.cache, "cache", timedelta(0), at)
    keys = pa.schema([pa.field(there, node.columns.field(mine).type) for mine, there in on])
    return RemoteLookup(made, columns, at, node, on, returns, wanted.how, kept, _remote(wanted, keys, returns, at))


def _pairs(on: On, node: Node, at: str | None) -> tuple[tuple[str, str], ...]:
    """The columns of the key, with their names in the other system."""
    pairs = tuple(on.items()) if isinstance(on, Mapping) else tuple((name, name) for name in listed(on))
    if not pairs:
        raise PlanError(f"lookup of {node.name!r} has no key", hint='name the columns that are asked for: on="user"', where=at)
    for names in zip(*pairs, strict=True):
        if len(set(names)) < len(names):
            raise PlanError(f"lookup of {node.name!r} on {', '.join(names)}: one of them twice", hint="name it once", where=at)
    for mine, _ in pairs:
        kind = column(node, mine, "lookup on").type
        if pa.types.is_nested(kind):
            raise PlanError(
                f"lookup on {mine!r}, which is {type_name(kind)}",
                why="records are spread and compared by plain values",
                hint="take a part of it into a column first: with_columns(...)",
                where=at,
            )
    return pairs


def _refuse_names(node: Node, on: tuple[tuple[str, str], ...], returns: pa.Schema, at: str | None) -> None:
    for name in returns.names:
        if name in node.columns.names or name in [there for _, there in on] or returns.names.count(name) > 1:
            raise PlanError(
                f"returns= of the lookup of {node.name!r} has {name!r}, which is taken",
                why="a result has the columns of the record, and those of the answer without its key",
                hint="leave the key out, and give others another name there and in the rows of the function",
                where=at,
            )
    if not returns.names:
        raise PlanError(f"lookup of {node.name!r} returns no column", hint='returns="name string"', where=at)


def _remote(wanted: Wanted, keys: pa.Schema, returns: pa.Schema, at: str | None) -> RemoteFunction:
    calls = wanted.calls
    for name, number, least in (("parallel", calls.parallel, 1), ("batch", calls.batch, 1), ("retries", calls.retries, 0)):
        if not counts(number, least=least):
            raise PlanError(f"{name}={number!r} of lookup(...) is no count", hint=f"give a whole number, {least} or more", where=at)
    timeout = _length(calls.timeout, "timeout", timedelta(microseconds=1), at)
    backoff = _length(calls.backoff, "backoff", timedelta(0), at)
    asked, system = wanted.function, ""
    if isinstance(asked, Answering):
        asked, system = asked.answers(Question(keys, returns, timeout)), str(asked)
    return RemoteFunction(asked, timeout, calls.parallel, calls.batch, calls.retries, backoff, system)


def _length(value: Any, name: str, least: timedelta, at: str | None) -> timedelta:
    if value is None or duration(value) < least:
        raise PlanError(
            f"{name}={value!r} of lookup(...) is no length of time",
            why="a call that hangs would stop the job, and an answer that is kept for ever would become wrong",
            hint='such as timeout="10 seconds"; cache="0 seconds" asks again in every epoch',
            where=at,
        )
    return duration(value)
