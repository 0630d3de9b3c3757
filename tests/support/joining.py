"""Random inputs of joins, the many ways in which they may arrive, and what DuckDB makes of them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from headrace.api.declaration import Declaration
from headrace.core.columns.schema import schema
from headrace.core.remarks import PlanWarning
from headrace.testing.driver import TestDriver
from tests.support.streams import at

LEFT, RIGHT = "id int, k string, n int, at timestamp", "rid int, k string, m int, at timestamp"
Row = dict[str, Any]
Sent = tuple[str, Row]
"""A record and the stream that it is sent to."""


@dataclass(frozen=True)
class Way:
    """One way for records to arrive: epochs with records of each stream, crashes after some, and over how many shards and partitions.

    `rescaled`: after some epochs the job goes on with another number of shards.
    """

    epochs: tuple[dict[str, list[Row]], ...]
    crashes: frozenset[int]
    rescaled: Mapping[int, int]
    shards: int
    partitions: int


def records(chance: random.Random, count: int = 40, *, keys: Sequence[str | None] = ("a", "b", "c", None)) -> list[Sent]:
    """Records of two streams, `a` and `b`, with bursts and gaps in time; no two of one stream have the same time."""
    made: list[Sent] = []
    second = 0
    for number in range(count):
        second += chance.choice([0, 0, 1, 1, 2, 3, 7] if chance.random() < 0.95 else [60])
        moment = at(second) + timedelta(microseconds=number)
        row: Row = {"k": chance.choice(keys), "at": moment}
        if chance.random() < 0.5:
            made.append(("a", {"id": number, "n": chance.choice([None, *range(5)]), **row}))
        else:
            made.append(("b", {"rid": number, "m": chance.choice([None, *range(5)]), **row}))
    return made


def way(chance: random.Random, sent: Sequence[Sent], disorder: float, *, late: float = 0) -> Way:
    """An order in which a record comes at most `disorder` seconds after younger ones, but for a share that is `late` by any time."""

    def arrives(row: Row) -> tuple[Any, float]:
        delay = chance.uniform(0, 300 if chance.random() < late else disorder)
        return row["at"] + timedelta(seconds=delay), chance.random()

    return in_batches(chance, sorted(sent, key=lambda one: arrives(one[1])))


def in_batches(chance: random.Random, ordered: Sequence[Sent], *, together: bool = True) -> Way:
    """Records in this order, in epochs: with `together` of all streams, else of one. Removals of rows are in epochs of their own."""
    epochs: list[dict[str, list[Row]]] = []
    alike: Any = None
    for stream, row in ordered:
        kind = (None if together and not row.get("removed") else stream, row.get("removed"))
        if not epochs or kind != alike or chance.random() >= 0.7:
            epochs.append({})
        epochs[-1].setdefault(stream, []).append(row)
        alike = kind
    crashes = frozenset(number for number in range(len(epochs)) if chance.random() < 0.2)
    rescaled = {number: chance.randrange(1, 5) for number in range(len(epochs)) if chance.random() < 0.1}
    return Way(tuple(epochs), crashes, rescaled, chance.randrange(1, 4), chance.randrange(1, 4))


def run(app: Declaration, taken: Way, each: Callable[[TestDriver, int], None] | None = None) -> TestDriver:
    """Let records arrive, with crashes, and end the input; `each` is called after every epoch, with the number of records so far."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)
        driver = TestDriver(app, shards=taken.shards, partitions=taken.partitions)
    came = 0
    for number, epoch in enumerate(taken.epochs):
        came += sum(map(len, epoch.values()))
        (stream, rows), *_ = epoch.items()
        if rows[0].get("removed"):
            driver.remove(stream, [{name: part for name, part in row.items() if name != "removed"} for row in rows])
        else:
            driver.send_all(epoch)
        if number in taken.crashes:
            driver.restart()
        if number in taken.rescaled:
            driver.rescale(taken.rescaled[number])
        if each is not None:
            each(driver, came)
    driver.end()
    return driver


def asked(query: str, **tables: tuple[Sequence[Row], str]) -> list[tuple[Any, ...]]:
    """What DuckDB answers over these rows, each table with its columns, in a fixed order."""
    for name, (rows, columns) in tables.items():
        kinds = schema(columns)
        _database().register(name, pa.Table.from_pylist([{part: row.get(part) for part in kinds.names} for row in rows], schema=kinds))
    return ordered(_database().execute(query).fetchall())


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for all questions: opening one takes longer than an answer."""
    return duckdb.connect(config={"threads": 1})


def ordered(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in an order that null has a place in."""
    return sorted(rows, key=lambda row: [(part is None, str(part)) for part in row])


def shown(driver: TestDriver, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of a view or sink."""
    return ordered([tuple(row[column] for column in columns) for row in driver.rows(name)])
