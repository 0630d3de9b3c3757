"""PostgreSQL's client as this package uses it: one connection for each process and database, renewed when it is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from headrace.connectors.client_cache import ClientCache
from headrace.connectors.patience import patiently
from headrace.connectors.postgres.declaration import PostgresTable
from headrace.core.errors import ConnectorError

Connection = psycopg.Connection[tuple[object, ...]]
Answer = TypeVar("Answer")

_SETTINGS: dict[str, Any] = {
    "application_name": "headrace",
    "connect_timeout": 10,
    # A writer that lost its server is told.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
# A refused login, or a request for something that does not exist, need not be repeated.
_FINAL = ("28", "3D", "42", "0A")
# A session that was ended because its writer was frozen is of neither kind.
_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.IdleInTransactionSessionTimeout)
# A writer that was frozen in its transaction releases its locks.
_IDLE = "60s"
_connections = ClientCache[Connection](close=psycopg.Connection.close)


def repeatedly(target: PostgresTable, what: str, work: Callable[[Connection], Answer]) -> Answer:
    """Do work that may be repeated; where the server is away or busy it is started again, on a new connection."""

    def attempt() -> Answer:
        try:
            return work(_connected(target))
        except (*_AWAY, psycopg.ProgrammingError) as error:
            forget(target)
            state = error.sqlstate or ""
            if isinstance(error, psycopg.ProgrammingError) or state[:2] in _FINAL or "authentication failed" in str(error):
                raise _failure(target, what, error, "check the table, and dsn=") from error
            raise

    try:
        return patiently(target.patience, attempt, _AWAY)
    except _AWAY as error:
        raise _failure(target, what, error, "check the server; the job continues from its last epoch when it is started again") from error


def forget(target: PostgresTable) -> None:
    """Close this process's connection to the database of a target."""
    _connections.drop(target.dsn)


def _connected(target: PostgresTable) -> Connection:
    return _connections.get(target.dsn, lambda: connect(target))


def connect(target: PostgresTable) -> Connection:
    """A new connection to the database of a target."""
    # The user's own options take precedence.
    connection = psycopg.connect(autocommit=True, **{**_SETTINGS, **conninfo_to_dict(target.dsn.reveal())})
    connection.execute("SET client_min_messages = warning")
    # Moments are written without their zone.
    connection.execute("SET TIME ZONE 'UTC'")
    connection.execute("SELECT set_config('idle_in_transaction_session_timeout', %s, false)", (_IDLE,))
    return connection


def _failure(target: PostgresTable, what: str, error: psycopg.Error, hint: str) -> ConnectorError:
    said = str(error).strip().replace("\n", " ") or type(error).__name__
    return ConnectorError(f"{what} {target} failed: {said}", hint=hint)
