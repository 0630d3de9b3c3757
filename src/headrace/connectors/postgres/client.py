"""PostgreSQL's client as this package uses it: one connection a process and database, made anew when it is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from headrace.connectors.kept import Kept
from headrace.connectors.patience import patiently
from headrace.connectors.postgres.declaration import PostgresTable
from headrace.core.errors import ConnectorError

Connection = psycopg.Connection[tuple[object, ...]]
Answer = TypeVar("Answer")

_SETTINGS: dict[str, Any] = {
    "application_name": "headrace",
    "connect_timeout": 10,
    # A writer that lost its server learns of it.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
# Who is not let in, or asks for what there is not, need not ask again.
_FINAL = ("28", "3D", "42", "0A")
# A session that was ended because its writer stood still is of neither kind.
_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.IdleInTransactionSessionTimeout)
# A writer that was frozen in its transaction gives the locks back.
_IDLE = "60s"
_connections = Kept[Connection](close=psycopg.Connection.close)


def repeatedly(target: PostgresTable, what: str, work: Callable[[Connection], Answer]) -> Answer:
    """Do work that may be repeated; where the server is away or busy it is begun again, on a new connection."""

    def attempt() -> Answer:
        try:
            return work(_connected(target))
        except (*_AWAY, psycopg.ProgrammingError) as error:
            forget(target)
            state = error.sqlstate or ""
            if isinstance(error, psycopg.ProgrammingError) or state[:2] in _FINAL or "authentication failed" in str(error):
                raise _failure(target, what, error, "look at the table, and at dsn=") from error
            raise

    try:
        return patiently(target.patience, attempt, _AWAY)
    except _AWAY as error:
        raise _failure(target, what, error, "look at the server; the job goes on from its last epoch when started again") from error


def forget(target: PostgresTable) -> None:
    """Close this process's connection to the database of a target."""
    _connections.drop(target.dsn)


def _connected(target: PostgresTable) -> Connection:
    return _connections.get(target.dsn, lambda: _connect(target))


def _connect(target: PostgresTable) -> Connection:
    # What the user's own words say comes first.
    connection = psycopg.connect(autocommit=True, **{**_SETTINGS, **conninfo_to_dict(target.dsn.reveal())})
    connection.execute("SET client_min_messages = warning")
    # Moments are written without their zone.
    connection.execute("SET TIME ZONE 'UTC'")
    connection.execute("SELECT set_config('idle_in_transaction_session_timeout', %s, false)", (_IDLE,))
    return connection


def _failure(target: PostgresTable, what: str, error: psycopg.Error, hint: str) -> ConnectorError:
    said = str(error).strip().replace("\n", " ") or type(error).__name__
    return ConnectorError(f"{what} {target} failed: {said}", hint=hint)
