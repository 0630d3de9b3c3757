"""A table of PostgreSQL as an output of the engine: rows and the number of their epoch are written in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

import polars as pl
import psycopg
import pyarrow as pa
from psycopg import sql

from headrace.connectors.output import Changes, DeadLetters, Writer, table_of
from headrace.connectors.postgres.client import Connection, repeatedly
from headrace.connectors.postgres.columns import as_csv
from headrace.connectors.postgres.declaration import PostgresTable
from headrace.connectors.postgres.definition import EPOCHS, prepared, qualified
from headrace.connectors.refusals import refused
from headrace.core import failpoints

_REFUSALS = (psycopg.DataError, psycopg.IntegrityError)
_PIECE = 1 << 20
# How long a writer waits for another one of its task before it ends that session, if it is of an earlier run.
_WAIT = "10s"


@dataclass(frozen=True)
class PostgresOutput:
    """A table, the columns written to it, and the key by which rows replace each other."""

    target: PostgresTable
    columns: pa.Schema
    key: tuple[str, ...]

    def reach(self) -> None:
        repeatedly(self.target, "connecting to", lambda connection: connection.execute("SELECT 1"))

    def prepare(self, tasks: int) -> None:
        repeatedly(self.target, "preparing", partial(prepared, target=self.target, columns=self.columns, key=self.key))

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        return repeatedly(self.target, "writing to", lambda connection: self._write(connection, writer, epoch, (changes, dead)))

    def publish(self, job: str, sink: str, epoch: int) -> None:
        """There is nothing to publish: committed rows are visible at once."""

    def last_epoch(self, writer: Writer) -> int | None:
        statement = sql.SQL("SELECT epoch FROM {} WHERE sink = %s AND task = %s AND epoch >= 0").format(self._epochs)
        asked = (_sink(writer), writer.task)
        found = repeatedly(self.target, "looking at", lambda connection: connection.execute(statement, asked).fetchone())
        if found is None:
            return None
        assert isinstance(found[0], int)
        return found[0]

    def _write(self, connection: Connection, writer: Writer, epoch: int, work: tuple[Changes, DeadLetters]) -> bool:
        try:
            return self._written(connection, writer, epoch, work)
        except psycopg.errors.LockNotAvailable:
            _end_earlier(connection, writer)
            raise

    def _written(self, connection: Connection, writer: Writer, epoch: int, work: tuple[Changes, DeadLetters]) -> bool:
        changes, dead = work
        with connection.transaction():
            # A session that waits for this transaction sees by this lock which run it belongs to.
            connection.execute(
                "SELECT pg_advisory_xact_lock_shared(%s, %s), set_config('lock_timeout', %s, true)",
                (_number(writer), writer.generation, _WAIT),
            )
            last = self._claimed(connection, writer)
            connection.execute("SET LOCAL lock_timeout TO DEFAULT")
            if last >= epoch:
                return False
            failpoints.reach("postgres.load.before")
            _bury(changes.upserts, self._loaded(connection, changes.upserts), dead)
            self._removed(connection, changes.deletes)
            connection.execute(
                sql.SQL("UPDATE {} SET epoch = %s, written_at = now() WHERE sink = %s AND task = %s").format(self._epochs),
                (epoch, _sink(writer), writer.task),
            )
            failpoints.reach("postgres.commit.before")
        failpoints.reach("postgres.commit.after")
        return True

    def _claimed(self, connection: Connection, writer: Writer) -> int:
        """The last epoch of a writer. Its row is locked: another run that writes now waits, and finds what was written."""
        statement = sql.SQL(
            "INSERT INTO {} AS held (sink, task, generation, epoch) VALUES (%s, %s, %s, -1) ON CONFLICT (sink, task) "
            "DO UPDATE SET generation = greatest(held.generation, excluded.generation) RETURNING generation, epoch"
        ).format(self._epochs)
        held = connection.execute(statement, (_sink(writer), writer.task, writer.generation)).fetchone()
        assert held is not None
        generation, epoch = held
        assert isinstance(generation, int)
        assert isinstance(epoch, int)
        if generation > writer.generation:
            raise writer.fenced()
        return epoch

    def _loaded(self, connection: Connection, frame: pl.DataFrame) -> dict[int, str]:
        """Load rows; returns which of them the table refuses, and why."""
        return _by_parts(connection, table_of(frame, self.columns), self._add if not self.key else self._replace)

    def _removed(self, connection: Connection, frame: pl.DataFrame) -> None:
        if frame.height:
            # A row that the table refused is not in it.
            _by_parts(connection, table_of(frame, pa.schema([self.columns.field(name) for name in self.key])), self._remove)

    def _add(self, connection: Connection, table: pa.Table) -> None:
        _copy(connection, self._table, table)

    def _replace(self, connection: Connection, table: pa.Table) -> None:
        rest = [sql.Identifier(name) for name in self.columns.names if name not in self.key]
        replacing = sql.SQL("UPDATE SET {}").format(sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in rest))
        # In the order of the key, an index is walked, not searched for each row: a fifth less time; and writers do not deadlock.
        statement = sql.SQL("INSERT INTO {} ({names}) SELECT {names} FROM {} ORDER BY {key} ON CONFLICT ({key}) DO {how}")
        self._merge(
            connection, table, statement,
            names=_names(self.columns.names), key=_names(self.key), how=replacing if rest else sql.SQL("NOTHING"),
        )  # fmt: skip

    def _remove(self, connection: Connection, table: pa.Table) -> None:
        same = sql.SQL(" AND ").join(sql.SQL("held.{0} = gone.{0}").format(sql.Identifier(name)) for name in self.key)
        self._merge(connection, table, sql.SQL("DELETE FROM {} AS held USING {} AS gone WHERE {same}"), same=same)

    def _merge(self, connection: Connection, table: pa.Table, statement: sql.SQL, **parts: sql.Composable) -> None:
        """Run a statement on the target table and on rows in a temporary table of this connection."""
        names = table.schema.names
        digest = blake2b("/".join([self.target.table, *names]).encode(), digest_size=8).hexdigest()
        stage = sql.Identifier(f"headrace_stage_{digest}")
        connection.execute(
            sql.SQL("CREATE TEMPORARY TABLE IF NOT EXISTS {} ON COMMIT DELETE ROWS AS SELECT {} FROM {} LIMIT 0").format(
                stage, _names(names), self._table
            )
        )
        _copy(connection, stage, table)
        connection.execute(statement.format(self._table, stage, **parts))
        connection.execute(sql.SQL("TRUNCATE {}").format(stage))

    @property
    def _table(self) -> sql.Identifier:
        return qualified(self.target.table)

    @property
    def _epochs(self) -> sql.Identifier:
        return qualified(self.target.table, EPOCHS)


def _by_parts(connection: Connection, table: pa.Table, act: Callable[[Connection, pa.Table], None]) -> dict[int, str]:
    """Act on as many rows at once as the table accepts; returns those it refuses, and why."""

    def take(first: int, last: int) -> None:
        with connection.transaction():
            act(connection, table.slice(first, last - first))

    return refused(table.num_rows, take, _REFUSALS)


def _copy(connection: Connection, into: sql.Identifier, table: pa.Table) -> None:
    text = as_csv(table)
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(into, _names(table.schema.names))
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for at in range(0, len(text), _PIECE):
            copy.write(text[at : at + _PIECE])


def _bury(frame: pl.DataFrame, reasons: dict[int, str], dead: DeadLetters) -> None:
    if reasons:
        dead(frame[list(reasons)], list(reasons.values()))


def _names(columns: tuple[str, ...] | list[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _end_earlier(connection: Connection, writer: Writer) -> None:
    """End the sessions of earlier runs that work for a writer: a frozen one would keep its row locked."""
    # The session of another database user cannot be ended: it releases the row after its idle time-out.
    with suppress(psycopg.errors.InsufficientPrivilege):
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND classid::bigint = %s AND objid::bigint < %s",
            (_number(writer), writer.generation),
        )


def _number(writer: Writer) -> int:
    """A writer as a number, for locks."""
    return int.from_bytes(blake2b(writer.name.encode(), digest_size=4).digest()) >> 1


def _sink(writer: Writer) -> str:
    return f"{writer.job}/{writer.sink}"
