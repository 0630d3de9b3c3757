"""Comparison of a job's results with the expected ones, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.app import App
from headrace.log.errors import UnknownTopic
from headrace.plan.plan import Plan
from headrace.plan.topics import dead_topic, late_topic
from headrace.schema.legible import as_json
from headrace.testing.driver import TestDriver


@dataclass(frozen=True)
class Difference:
    """One output: the number of expected rows, of missing ones, and of unexpected or repeated ones."""

    output: str
    expected: int
    found: int
    lost: int
    duplicated: int
    example: str = ""

    @property
    def whole(self) -> bool:
        return not self.lost and not self.duplicated


def differences(app: App, expected: TestDriver) -> Iterator[Difference]:
    """Every view and sink of an app, its late records and its dead letters, compared with those of a driver."""
    plan = app.plan()
    for output in plan.outputs:
        assert output.topic is not None, "an app that runs apart has all its outputs in its own log"
        held = app.log.snapshot(output.topic).table if output.folds_by else _read(app, output.topic)
        yield difference(output.name, expected.rows(output.name), held.select(output.node.columns.names))
    yield from _sides(app, plan, expected)


def difference(name: str, rows: Sequence[dict[str, Any]], held: pa.Table) -> Difference:
    """The difference between expected and actual rows, in any order.

    >>> difference("clicks", [{"n": 1}, {"n": 2}], pa.table({"n": [1, 1]}))
    Difference(output='clicks', expected=2, found=2, lost=1, duplicated=1, example='{"n":2}')
    """
    wanted, found = _texts(pa.Table.from_pylist(list(rows), schema=held.schema)), _texts(held)
    lost, more = wanted - found, found - wanted
    example = next(iter(lost | more), "")
    return Difference(name, wanted.total(), found.total(), lost.total(), more.total(), example)


def _sides(app: App, plan: Plan, expected: TestDriver) -> Iterator[Difference]:
    for source in plan.sources:
        sides = {late_topic(source.name): expected.late(source.name), dead_topic(source.name): expected.dead_letters(source.name)}
        for topic, rows in sides.items():
            names = app.log.topic(topic).columns.names
            yield difference(topic, [{name: row[name] for name in names} for row in rows], _read(app, topic).select(names))


def _read(app: App, topic: str) -> pa.Table:
    try:
        return app.log.read(topic)
    except UnknownTopic:
        return pa.table({})


def _texts(table: pa.Table) -> Counter[str]:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return Counter(as_json(frame).to_list())
