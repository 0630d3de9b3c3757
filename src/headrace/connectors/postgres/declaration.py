"""A table of PostgreSQL as a user declares it; nothing is connected here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.connectors.targets import need_client, need_text
from headrace.core.columns.names import Names, listed
from headrace.core.durations import Duration, duration
from headrace.core.errors import SettingsError
from headrace.core.promise import Promise, Takes
from headrace.core.secret import Secret
from headrace.core.where import says_where
from headrace.plan.joins.remote_lookup import Question

if TYPE_CHECKING:
    from headrace.connectors.postgres.answers import PostgresAnswers
    from headrace.connectors.postgres.output import PostgresOutput


@dataclass(frozen=True)
class PostgresTable:
    """The table, its database, and how it is written; see `postgres`."""

    table: str
    dsn: Secret
    key: tuple[str, ...] = ()
    append_only: bool = False
    create: bool = True
    patience: timedelta = timedelta(minutes=2)

    def __post_init__(self) -> None:
        if not isinstance(self.table, str) or not all(self.table.split(".")) or self.table.count(".") > 1:
            raise SettingsError(f"{self.table!r} is not a name of a table", hint='"table", or "schema.table"')
        if self.append_only and self.key:
            raise SettingsError(
                f"table {self.table!r} is append_only and has a key", why="rows of a key replace each other", hint="leave one of them out"
            )

    @property
    def promise(self) -> Promise:
        return Promise(
            Takes.FACTS if self.append_only else Takes.LATEST,
            "exactly once",
            "rows and the epoch of the task in one transaction",
            "a task's epoch at once",
        )

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if the table cannot have these columns, or PostgreSQL's client is missing: before anything runs."""
        from headrace.connectors.postgres.columns import type_of

        need_client("psycopg", "PostgreSQL's client", "postgres")
        for column in columns:
            type_of(column)

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> PostgresOutput:
        """The table as a job writes it."""
        from headrace.connectors.postgres.output import PostgresOutput

        return PostgresOutput(self, columns, key)

    def answers(self, question: Question) -> PostgresAnswers:
        """The table as a lookup asks it."""
        need_client("psycopg", "PostgreSQL's client", "postgres")
        from headrace.connectors.postgres.answers import PostgresAnswers

        return PostgresAnswers(self, question)

    def __str__(self) -> str:
        return f"table {self.table} of PostgreSQL"


@says_where
def postgres(  # noqa: PLR0913 - one option for each thing that may differ
    table: str,
    *,
    dsn: str | Secret,
    key: Names = (),
    append_only: bool = False,
    create: bool = True,
    patience: Duration = "2 minutes",
) -> PostgresTable:
    """A table of PostgreSQL as the target of a sink, exactly once.

    Results of a table replace and remove rows by their key, or by `key`; facts are added or, with `key`, replace earlier ones. The table is
    created if it does not exist, unless `create=False`; an existing one must have the columns, and a unique key. The table
    `headrace_epochs` next to it is written in the same transactions. `dsn` is PostgreSQL's own (`postgresql://user:password@host/database`)
    and is never shown. The job waits for a server that is away as long as `patience`.

    In `stream.lookup(hr.postgres(table, dsn=...), ...)` one query asks for the rows of a batch of keys; the table may be a view.

    >>> postgres("views_per_url", dsn="postgresql://writer:s3same@localhost/shop")
    PostgresTable(table='views_per_url', dsn=Secret(***), key=(), ...)
    """
    if not isinstance(dsn, Secret):
        need_text("dsn", dsn, "postgresql://user:password@host/database")
    hidden = dsn if isinstance(dsn, Secret) else Secret(dsn)
    return PostgresTable(table, hidden, listed(key), append_only, create, duration(patience))
