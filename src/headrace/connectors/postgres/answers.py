"""A table of PostgreSQL as the other system of a lookup: one query for a batch of keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pyarrow as pa
from psycopg import sql

from headrace.connectors.postgres.client import Connection, connect
from headrace.connectors.postgres.columns import type_of
from headrace.connectors.postgres.declaration import PostgresTable
from headrace.connectors.postgres.definition import qualified
from headrace.connectors.postgres.spare_connections import SpareConnections
from headrace.core.durations import microseconds
from headrace.plan.joins.remote_lookup import Question

# Of each key at most two rows: the second shows that there are several, however many there are.
_QUERY = """
SELECT {names} FROM (
    SELECT {columns}, row_number() OVER (PARTITION BY {asked}) AS headrace_number
    FROM unnest({arrays}) AS asked ({keys}) JOIN {table} AS found ON {equal}
) AS numbered WHERE headrace_number <= 2
"""
_connections = SpareConnections()


@dataclass(frozen=True)
class PostgresAnswers:
    """Asks for the rows of keys, and ends on the server, too, when its time is up."""

    target: PostgresTable
    question: Question

    def __call__(self, keys: pa.Table) -> list[dict[str, Any]]:
        arrays = _arrays(keys)
        if not arrays[0]:
            return []
        names = [*self.question.keys.names, *self.question.returns.names]
        query = self._query()
        purpose = (self.target.dsn, self.question.timeout)
        rows = _connections.lend(purpose, self._connected, lambda connection: connection.execute(query, arrays).fetchall())
        return [dict(zip(names, map(_plain, row), strict=True)) for row in rows]

    def _query(self) -> sql.Composed:
        """The columns of a key are those that were asked for: what the table has may be written in another way, and be equal."""
        keys, returns = self.question.keys, self.question.returns.names
        asked = [sql.Identifier("asked", name) for name in keys.names]
        return sql.SQL(_QUERY).format(
            names=_listed([sql.Identifier(name) for name in (*keys.names, *returns)]),
            columns=_listed([*asked, *(sql.Identifier("found", name) for name in returns)]),
            asked=_listed(asked),
            arrays=_listed([sql.SQL(f"%s::{type_of(key)}[]") for key in keys]),
            keys=_listed([sql.Identifier(name) for name in keys.names]),
            table=qualified(self.target.table),
            equal=sql.SQL(" AND ").join(_equal(name) for name in keys.names),
        )

    def _connected(self) -> Connection:
        connection = connect(self.target)
        milliseconds = max(microseconds(self.question.timeout) // 1_000, 1)
        connection.execute("SELECT set_config('statement_timeout', %s, false)", (str(milliseconds),))
        connection.execute("SET default_transaction_read_only = on")
        return connection


def _arrays(keys: pa.Table) -> list[list[Any]]:
    """The columns of the keys. PostgreSQL has no text with a zero character: no row has such a key."""
    rows = [row for row in zip(*(column.to_pylist() for column in keys.columns), strict=True) if not any(map(_unknowable, row))]
    return [[row[number] for row in rows] for number in range(keys.num_columns)]


def _unknowable(part: Any) -> bool:
    return isinstance(part, str) and "\0" in part


def _equal(name: str) -> sql.Composed:
    return sql.SQL("{} = {}").format(sql.Identifier("found", name), sql.Identifier("asked", name))


def _listed(parts: Sequence[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value
