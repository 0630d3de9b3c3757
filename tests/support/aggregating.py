"""Aggregates computed as operators compute them: batches in part, the parts merged in any order, then finished."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl

from headrace.api.declaration import Declaration
from headrace.api.windows import perfect, tumbling
from headrace.operators.aggregates.arguments import aggregates_of
from headrace.operators.aggregates.partials import FAULT, finishes, merged, partial
from headrace.operators.changes import OP
from headrace.operators.expressions import compile as compiled
from headrace.plan.aggregates.nodes import WindowAggregate
from headrace.plan.aggregates.user_aggregate import Aggregate

SCHEMA = "k string, at timestamp, i int, l bigint, f float, d double, m decimal(10,2), s string, b boolean, a date"


def aggregated(
    texts: Sequence[str], frame: pl.DataFrame, *, seed: int | None = None, own: Mapping[str, Aggregate] | None = None
) -> dict[Any, dict[str, Any]]:
    """The aggregates by `k`; with a seed, the records shuffled, cut into batches, and these merged in pairs at random.

    Records with `_op` are a changelog.
    """
    node = declared(tuple(texts), tuple((own or {}).items()))
    aggregates, arguments = aggregates_of(node)
    signs = [name for name in (OP,) if name in frame.columns]
    aggregates = tuple(replace(aggregate, signed=bool(signs)) for aggregate in aggregates)
    columns = [compiled(typed).value.alias(name) for name, typed in arguments]
    records = frame.select("k", pl.col("at").cast(pl.Int64).alias("_time"), *columns, *signs)
    parts = [partial(part, ("k",), aggregates) for part in _batches(records, seed)]
    chance = random.Random(seed)
    while len(parts) > 1:
        chance.shuffle(parts)
        parts.append(merged(pl.concat([parts.pop(), parts.pop()]), ("k",), aggregates))
    done = parts[0].select("k", *finishes(aggregates))
    shown = [compiled(output.expression).value.alias(output.name) for output in node.outputs]
    found = done.select("k", *shown, *([FAULT] if FAULT in done.columns else []))
    return {row["k"]: {text: row[f"c{place}"] for place, text in enumerate(texts)} | _fault(row) for row in found.to_dicts()}


@cache
def declared(texts: tuple[str, ...], own: tuple[tuple[str, Aggregate], ...] = ()) -> WindowAggregate:
    app = Declaration("aggregates")
    for name, function in own:
        app.aggregate(name, function)
    stream = app.stream("rows", SCHEMA, time="at", watermark=perfect())
    outputs = {f"c{place}": text for place, text in enumerate(texts)}
    return stream.window(tumbling("1 day"), by="k").agg(**outputs).node


def _fault(row: dict[str, Any]) -> dict[str, Any]:
    return {FAULT: row[FAULT]} if row.get(FAULT) else {}


def _batches(records: pl.DataFrame, seed: int | None) -> list[pl.DataFrame]:
    if seed is None:
        return [records]
    shuffled = records.sample(fraction=1.0, shuffle=True, seed=seed)
    chance = random.Random(seed)
    cuts = sorted(chance.randrange(len(records) + 1) for _ in range(chance.randrange(1, 6)))
    return [shuffled[low:high] for low, high in zip([0, *cuts], [*cuts, len(records)], strict=True)]
