"""The tables that a sink writes to: created where they are missing, checked where they exist."""

from __future__ import annotations

import pyarrow as pa
from psycopg import sql

from headrace.connectors.postgres.client import Connection
from headrace.connectors.postgres.columns import fits, type_of
from headrace.connectors.postgres.declaration import PostgresTable
from headrace.core.errors import SchemaError

EPOCHS = "headrace_epochs"
_EPOCH_COLUMNS = "sink text, task integer, generation bigint NOT NULL, epoch bigint NOT NULL, written_at timestamptz DEFAULT now()"
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod), attnotnull AND NOT atthasdef AND attidentity = '' AND attgenerated = ''
FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
"""
_UNIQUE = """
SELECT array_agg(attname::text ORDER BY attname) FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
WHERE indrelid = %s::regclass AND indisunique AND indpred IS NULL GROUP BY indexrelid
"""


def qualified(table: str, other: str | None = None) -> sql.Identifier:
    """The name of a table, or of another one in the same schema."""
    *schema, name = table.split(".")
    return sql.Identifier(*schema, other or name)


def prepared(connection: Connection, *, target: PostgresTable, columns: pa.Schema, key: tuple[str, ...]) -> None:
    """Make sure that a table accepts these columns, with `key` as the identity of rows, and that epochs can be recorded next to it."""
    name = qualified(target.table).as_string(connection)
    with connection.transaction():
        # Two jobs may begin at once, and PostgreSQL creates tables one after the other only if told so.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('headrace'))")
        connection.execute(
            sql.SQL(f"CREATE TABLE IF NOT EXISTS {{}} ({_EPOCH_COLUMNS}, PRIMARY KEY (sink, task))").format(qualified(target.table, EPOCHS))
        )
        if target.create:
            connection.execute(_creation(target, columns, key))
        present = {str(column): (str(kind), bool(needed)) for column, kind, needed in connection.execute(_COLUMNS, (name,)).fetchall()}
        _check_columns(target, columns, present)
        unique = [found for (found,) in connection.execute(_UNIQUE, (name,)).fetchall()]
    if key and sorted(key) not in unique:
        raise SchemaError(
            f"{target} has no unique index on {', '.join(key)}",
            why="a row could not replace the one of its key",
            hint=f"CREATE UNIQUE INDEX ON {target.table} ({', '.join(key)})",
        )


def _creation(target: PostgresTable, columns: pa.Schema, key: tuple[str, ...]) -> sql.Composed:
    parts: list[sql.Composable] = [sql.SQL("{} {}").format(sql.Identifier(column.name), _kind(column)) for column in columns]
    if key:
        parts.append(sql.SQL("PRIMARY KEY ({})").format(sql.SQL(", ").join(map(sql.Identifier, key))))
    return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(qualified(target.table), sql.SQL(", ").join(parts))


def _kind(column: pa.Field) -> sql.SQL:
    return sql.SQL(type_of(column))


def _check_columns(target: PostgresTable, columns: pa.Schema, present: dict[str, tuple[str, bool]]) -> None:
    for column in columns:
        if column.name not in present:
            raise SchemaError(
                f"{target} has no column {column.name!r}",
                hint=f"ALTER TABLE {target.table} ADD COLUMN {column.name} {type_of(column)}, or select other columns",
            )
        kind, _ = present[column.name]
        if not fits(column, kind):
            raise SchemaError(
                f"column {column.name!r} of {target} is {kind}, the results have {type_of(column)}",
                hint="cast it before the sink, or change the table",
            )
    for name, (_, needed) in present.items():
        if needed and name not in columns.names:
            raise SchemaError(
                f"column {name!r} of {target} must have a value, and the results have no such column", hint="give it a default, or add it"
            )
