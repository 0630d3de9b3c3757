"""A table of a real PostgreSQL server as an output."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import psycopg
import pyarrow as pa
import pytest
from psycopg.rows import dict_row

import headrace as hr
from headrace.connectors.output import Changes, Writer
from headrace.connectors.postgres import client
from headrace.connectors.postgres.output import PostgresOutput
from headrace.core.columns.schema import schema
from headrace.ops.servers.postgres import PostgresServer
from headrace.testing.conformance import CASES, COLUMNS, KEY, Subject
from headrace.testing.conformance.subject import Letters, SubjectWriter, changes_of, made, ordered
from headrace.testing.conformance.victim import Victim
from headrace.testing.faults import faults

_numbers = itertools.count()


class PostgresSubject(Subject):
    poison = "a\0b"
    stall = "postgres.commit.before"
    away = (psycopg.OperationalError,)

    def __init__(self, server: PostgresServer, key: tuple[str, ...]) -> None:
        self.key = key
        self.target = hr.postgres(f"out_{next(_numbers)}", dsn=server.dsn)
        self._dsn = server.dsn
        self.output().prepare(2)

    def output(self) -> PostgresOutput:
        return self.target.output(COLUMNS, self.key)

    def rows(self) -> list[dict[str, Any]]:
        with psycopg.connect(self._dsn, row_factory=dict_row) as connection:
            # In the order in which rows were added.
            return connection.execute(f"SELECT * FROM {self.target.table} ORDER BY ctid").fetchall()  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [(), KEY], ids=["facts", "table"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_table_keeps_what_an_output_promises(case: Any, key: tuple[str, ...], postgres: PostgresServer) -> None:
    case(PostgresSubject(postgres, key))


def test_a_server_that_was_killed_is_waited_for() -> None:
    with PostgresServer() as server:
        subject = PostgresSubject(server, KEY)
        hand = SubjectWriter(subject)
        hand.write(1, made(1))
        server.kill()
        back = threading.Timer(0.3, server.start)
        back.start()
        assert hand.write(2, made(2))
        back.join()
        assert ordered(subject.rows()) == made(2)


def test_a_frozen_writer_of_an_earlier_run_is_not_waited_for(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.connectors.postgres.output._WAIT", "200ms")
    subject = PostgresSubject(postgres, KEY)
    old, new = SubjectWriter(subject, generation=1), SubjectWriter(subject, generation=2)
    victim = Victim(old.output, old.writer, 1, made(1), f"{subject.stall}=delay(2)")
    victim.wait()
    os.kill(victim.pid, signal.SIGSTOP)
    try:
        assert new.write(1, made(1))
        assert new.write(2, made(2))
    finally:
        os.kill(victim.pid, signal.SIGCONT)
    assert victim.end() == 1, "it was not shut out"
    assert ordered(subject.rows()) == made(2)


def test_a_writer_that_stood_still_for_so_long_that_its_session_was_ended_begins_again(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_IDLE", "100ms")
    subject = PostgresSubject(postgres, ())
    client.forget(subject.target)
    with faults(f"{subject.stall}=delay(0.5)@1"):
        assert SubjectWriter(subject).write(1, made(1))
    assert ordered(subject.rows()) == made(1)
    client.forget(subject.target)


def test_a_server_that_stays_away_stops_the_writer_with_its_reason_and_no_password() -> None:
    target = hr.postgres("t", dsn="postgresql://writer:s3same@127.0.0.1:1/shop", patience="200ms")
    with pytest.raises(hr.ConnectorError, match="preparing table t of PostgreSQL failed") as stopped:
        target.output(COLUMNS, ()).prepare(1)
    assert "s3same" not in str(stopped.value) + repr(target) + str(target)


def test_who_is_not_let_in_is_told_at_once(postgres: PostgresServer) -> None:
    wrong = postgres.dsn.replace("headrace:", "headrace:not-")
    with pytest.raises(hr.ConnectorError, match="password authentication failed") as stopped:
        hr.postgres("t", dsn=wrong).output(COLUMNS, ()).prepare(1)
    assert wrong not in str(stopped.value)


def test_settings_of_the_address_are_heeded(postgres: PostgresServer) -> None:
    _execute(postgres, "CREATE SCHEMA apart")
    hr.postgres("placed", dsn=f"{postgres.dsn}?options=-csearch_path%3Dapart").output(COLUMNS, ()).prepare(1)
    assert _execute(postgres, "SELECT schemaname FROM pg_tables WHERE tablename = 'placed'") == [("apart",)]


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ('"user" text PRIMARY KEY, n bigint', "no column 'note'"),
        ('"user" text PRIMARY KEY, n integer, note text', "column 'n' of table .* is integer, the results have bigint"),
        ('"user" text, n bigint, note text', "no unique index on user"),
        ('"user" text PRIMARY KEY, n bigint, note text, more text NOT NULL', "column 'more' .* must have a value"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_the_job_starts(postgres: PostgresServer, definition: str, said: str) -> None:
    name = f"misfit_{next(_numbers)}"
    _execute(postgres, f"CREATE TABLE {name} ({definition})")
    with pytest.raises(hr.SchemaError, match=said):
        hr.postgres(name, dsn=postgres.dsn).output(COLUMNS, KEY).prepare(1)


def test_a_table_of_ones_own_with_more_and_wider_columns_is_written_to(postgres: PostgresServer) -> None:
    _execute(postgres, 'CREATE SCHEMA "odd Name"')
    _execute(
        postgres, 'CREATE TABLE "odd Name".own (id bigserial, "user" varchar(9) UNIQUE, n numeric, note text, at timestamptz DEFAULT now())'
    )
    target = hr.postgres("odd Name.own", dsn=postgres.dsn, create=False)
    letters = Letters()
    rows = [{"user": "short", "n": 1, "note": ""}, {"user": "much too long for it", "n": 2, "note": ""}, {"user": None, "n": 3, "note": ""}]
    target.output(COLUMNS, KEY).prepare(1)
    target.output(COLUMNS, KEY).write(Writer("job", "own"), 1, changes_of(rows), letters)
    found = _execute(postgres, 'SELECT "user", n FROM "odd Name".own ORDER BY n')
    assert found == [("short", 1), (None, 3)]
    assert [letter["reason"] for letter in letters.found[0]] == ["value too long for type character varying(9)"]


def test_every_type_comes_through(postgres: PostgresServer) -> None:
    columns = schema(
        "b boolean, t tinyint, s smallint, i int, l bigint, f float, d double, text string, raw binary, day date, at timestamp, "
        "local timestamp_ntz, money decimal(20,4), tags array<string>, pair struct<a:int,b:string>"
    )
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    full = {
        "b": True, "t": 1, "s": 2, "i": 3, "l": 2**62, "f": 0.5, "d": 0.1, "text": "x", "raw": b"\x00\xff\\",
        "day": date(2026, 1, 2), "at": moment, "local": moment.replace(tzinfo=None), "money": Decimal("12345678.9012"),
        "tags": ["a", 'b"'], "pair": {"a": 1, "b": None},
    }  # fmt: skip
    nan = {**full, "f": float("inf"), "d": float("nan")}
    frame = pl.from_arrow(pa.Table.from_pylist([full, dict.fromkeys(full), nan], schema=columns))
    assert isinstance(frame, pl.DataFrame)
    output = hr.postgres("every_type", dsn=postgres.dsn).output(columns, ())
    output.prepare(1)
    output.write(Writer("job", "types"), 1, Changes(frame), Letters())
    first, second, third = _execute(postgres, "SELECT * FROM every_type")
    assert dict(zip(full, first, strict=True)) == full
    assert set(second) == {None}
    assert (third[5], str(third[6])) == (float("inf"), "nan")


def _execute(server: PostgresServer, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.dsn) as connection:
        cursor = connection.execute(statement)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []
