"""The step that asks another system, built from a function or connector, a key, and the columns of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace.core.columns.names import listed
from headrace.core.columns.schema import type_name
from headrace.core.counts import counts
from headrace.core.durations import Duration, duration
from headrace.plan.building.functions import refuse_arity
from headrace.plan.building.step_place import StepPlace
from headrace.plan.joins.join import LEFT, On
from headrace.plan.joins.remote_lookup import Answering, Question, RemoteFunction, RemoteLookup
from headrace.plan.nodes import Node, column


@dataclass(frozen=True)
class Calls:
    """The calls of another system: how long each may take, how many run at a time, their keys, and how they are repeated."""

    timeout: Duration
    parallel: int
    batch: int
    retries: int
    backoff: Duration


@dataclass(frozen=True)
class LookupArguments:
    """The arguments of `lookup`: a function or connector, the key, the columns of an answer, and how long that is kept."""

    function: Any
    on: On
    returns: pa.Schema
    how: str
    cache: Duration
    calls: Calls


def lookup(after: StepPlace, asked: LookupArguments, name: str | None = None) -> RemoteLookup:
    node, returns = after.node, asked.returns
    if not isinstance(asked.function, Answering):
        _refuse_others(after, asked.function)
        refuse_arity(asked.function, ("keys",), f"lookup(...) of {node.name!r}", after.at)
    on = _pairs(after, asked.on)
    _refuse_names(after, on, returns)
    added = [one.with_nullable(True) if asked.how == LEFT else one for one in returns]
    columns = pa.schema([*after.columns, *added])
    called = after.called("lookup", name)
    kept = _length(after, asked.cache, "cache", timedelta(0))
    keys = pa.schema([pa.field(there, after.columns.field(mine).type) for mine, there in on])
    return RemoteLookup(called, columns, after.at, node, on, returns, asked.how, kept, _remote(after, asked, keys))


def _refuse_others(after: StepPlace, given: Any) -> None:
    """Systems that a sink writes, and that have no answer for a key; streams and tables of the app."""
    node = getattr(given, "node", None)
    if hasattr(given, "promise") or isinstance(node, Node):
        raise after.refused(
            f"lookup(...) of {after.node.name!r}: {repr(node.name) if isinstance(node, Node) else given} cannot be asked for keys",
            hint="ask hr.http, hr.postgres, hr.redis or a function of your own; join what has a changelog as a table: "
            'stream.join(app.table("name", ..., source=...), on=...)',
        )


def _pairs(after: StepPlace, on: On) -> tuple[tuple[str, str], ...]:
    """The columns of the key, with their names in the other system."""
    said = f"lookup of {after.node.name!r}"
    pairs = tuple(on.items()) if isinstance(on, Mapping) else tuple((name, name) for name in listed(on))
    if not pairs:
        raise after.refused(f"{said} has no key", hint='name the columns that are asked for: on="user"')
    for names in zip(*pairs, strict=True):
        if len(set(names)) < len(names):
            raise after.refused(f"{said} on {', '.join(names)}: one of them twice", hint="name it once")
    for mine, _ in pairs:
        kind = column(after.node, mine, "lookup on").type
        if pa.types.is_nested(kind):
            raise after.refused(
                f"lookup on {mine!r}, which is {type_name(kind)}",
                why="records are spread and compared by plain values",
                hint="take a part of it into a column first: with_columns(...)",
            )
    return pairs


def _refuse_names(after: StepPlace, on: tuple[tuple[str, str], ...], returns: pa.Schema) -> None:
    # Expressions do not distinguish upper from lower case.
    taken, own = {name.lower() for name in after.columns.names}, [name.lower() for name in returns.names]
    for name in returns.names:
        if name.lower() in taken or name in [there for _, there in on] or own.count(name.lower()) > 1:
            raise after.refused(
                f"returns= of the lookup of {after.node.name!r} has {name!r}, which is taken",
                why="a result has the columns of the record, and those of the answer without its key",
                hint="leave the key out, and give others another name there and in the rows of the function",
            )
    if not returns.names:
        raise after.refused(f"lookup of {after.node.name!r} returns no column", hint='returns="name string"')


def _remote(after: StepPlace, asked: LookupArguments, keys: pa.Schema) -> RemoteFunction:
    calls = asked.calls
    for name, number, least in (("parallel", calls.parallel, 1), ("batch", calls.batch, 1), ("retries", calls.retries, 0)):
        if not counts(number, least=least):
            raise after.refused(f"{name}={number!r} of lookup(...) is not a count", hint=f"give a whole number, {least} or more")
    timeout = _length(after, calls.timeout, "timeout", timedelta(microseconds=1))
    backoff = _length(after, calls.backoff, "backoff", timedelta(0))
    function, system = asked.function, ""
    if isinstance(function, Answering):
        function, system = function.answers(Question(keys, asked.returns, timeout)), str(function)
    return RemoteFunction(function, timeout, calls.parallel, calls.batch, calls.retries, backoff, system)


def _length(after: StepPlace, value: Any, name: str, least: timedelta) -> timedelta:
    if value is None or duration(value) < least:
        raise after.refused(
            f"{name}={value!r} of lookup(...) is {'no duration' if value is None else 'too short'}",
            why="a call that hangs would stop the job, and an answer that is kept forever would become wrong",
            hint='such as timeout="10 seconds"; cache="0 seconds" asks again in every epoch',
        )
    return duration(value)
