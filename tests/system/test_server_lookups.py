"""Lookups in a real PostgreSQL and a real Redis: rows of a batch of keys, and what is no answer."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import psycopg
import pytest
from redis import Redis

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.connectors.output import Changes, Writer
from headrace.core.columns.schema import schema
from headrace.core.errors import SettingsError
from headrace.ops.servers.postgres import PostgresServer
from headrace.ops.servers.redis import RedisServer
from headrace.testing.conformance.subject import Letters
from headrace.testing.driver import TestDriver

_numbers = itertools.count()
Row = dict[str, Any]


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Any]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        yield connection


def table(database: Any, columns: str, *rows: tuple[Any, ...]) -> str:
    name = f"asked_{next(_numbers)}"
    database.execute(f"CREATE TABLE {name} ({columns})")
    for row in rows:
        database.execute(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(row))})", row)
    return name


def driver_of(asked: Any, columns: str = "n int, user string", **options: Any) -> TestDriver:
    app = Declaration("orders")
    orders = app.stream("orders", columns, key="n")
    chosen: Row = {"on": {"user": "id"}, "returns": "name string", "how": "left", "backoff": "1 us", "retries": 0} | options
    app.sink(orders.lookup(asked, **chosen), hr.log("named"), name="named")
    return TestDriver(app, shards=1, starts_at="2026-01-01T12:00:00Z")


def send(driver: TestDriver, *users: Any) -> None:
    driver.send("orders", [{"n": n, "user": user} for n, user in enumerate(users)])


def named(driver: TestDriver) -> list[tuple[int, Any]]:
    return sorted((row["n"], row["name"]) for row in driver.rows("named"))


def reasons(driver: TestDriver) -> list[str]:
    return [row["reason"] for row in driver.dead_letters("orders")]


def test_a_table_is_asked_for_a_batch_of_keys_and_answers_are_kept(postgres: PostgresServer, database: Any) -> None:
    name = table(database, "id text PRIMARY KEY, name text", ("ada", "Ada"), ("bob", None))
    driver = driver_of(hr.postgres(name, dsn=postgres.dsn))
    send(driver, "ada", "eve", "ada", None, "bob", "no\0body")
    assert named(driver) == [(0, "Ada"), (1, None), (2, "Ada"), (3, None), (4, None), (5, None)]
    database.execute(f"UPDATE {name} SET name = 'Anna' WHERE id = 'ada'")
    driver.restart()
    send(driver, "ada")
    assert named(driver)[:2] == [(0, "Ada"), (0, "Ada")]
    driver.wait("10 minutes")
    send(driver, "ada")
    assert (0, "Anna") in named(driver)


def test_keys_and_columns_have_the_types_of_the_table(postgres: PostgresServer, database: Any) -> None:
    columns = """shop bigint, size double precision, day date, price numeric(8, 2), at timestamptz, tags jsonb, small smallint,
        ref uuid, PRIMARY KEY (shop, size, day)"""
    at, ref = datetime(2026, 1, 2, 3, 4, 5, 678, UTC), "0b0e9bd4-53ac-4c53-a6f6-2c3c5a1a7b61"
    rows = [(1, size, date(2026, 1, 1), Decimal("9.50"), at, json.dumps(["x"]), 7, ref) for size in (-0.0, float("nan"), 1.5)]
    name = table(database, columns, *rows)
    app = Declaration("types")
    orders = app.stream("orders", "n int, shop int, size double, day date", key="n")
    returns = "price decimal(8,2), at timestamp, tags array<string>, small int, ref string"
    app.sink(orders.lookup(hr.postgres(name, dsn=postgres.dsn), on=["shop", "size", "day"], returns=returns), hr.log("out"), name="out")
    with TestDriver(app, shards=1) as driver:
        sizes = [0.0, -0.0, float("nan"), 1.5, 2.5]
        driver.send("orders", [{"n": n, "shop": 1, "size": size, "day": "2026-01-01"} for n, size in enumerate(sizes)])
        found = {row["n"]: tuple(row[part] for part in ("price", "at", "tags", "small", "ref")) for row in driver.rows("out")}
    assert found == dict.fromkeys(range(4), (Decimal("9.50"), at, ["x"], 7, ref))


def test_several_rows_of_a_key_fail_that_key_however_many_there_are(postgres: PostgresServer, database: Any) -> None:
    name = table(database, "id text, name text", ("b", "Bob"))
    database.execute(f"INSERT INTO {name} SELECT 'a', n::text FROM generate_series(1, 20000) AS n")
    driver = driver_of(hr.postgres(name, dsn=postgres.dsn))
    send(driver, "a", "b")
    assert named(driver) == [(1, "Bob")]
    assert [reason.endswith(f"table {name} of PostgreSQL returned several rows for the key") for reason in reasons(driver)] == [True]


@pytest.mark.parametrize(("columns", "said"), [
    ("id text, nick text", "column found.name does not exist"), ("id integer, name text", "operator does not exist: integer = text"),
    ("id text, name integer", "column name is string, not 5"),
])  # fmt: skip
def test_other_columns_and_other_types_are_the_reason_of_dead_letters(
    postgres: PostgresServer, database: Any, columns: str, said: str
) -> None:
    name = table(database, columns, ("5", "5"))
    driver = driver_of(hr.postgres(name, dsn=postgres.dsn))
    send(driver, "5")
    assert [said in reason for reason in reasons(driver)] == [True], reasons(driver)
    assert named(driver) == []


def test_a_query_that_hangs_ends_on_the_server_too_and_the_next_epoch_asks_again(postgres: PostgresServer, database: Any) -> None:
    name = table(database, "id text PRIMARY KEY, name text", ("a", "Ada"))
    driver = driver_of(hr.postgres(name, dsn=postgres.dsn), timeout="2 seconds")
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
    with database.transaction():
        database.execute(f"LOCK TABLE {name}")
        send(driver, "a")
        while database.execute(waiting, (name,)).fetchone() != (0,):
            database.execute("SELECT pg_sleep(0.01)")
    assert ["TimeoutError" in reason or "statement timeout" in reason for reason in reasons(driver)] == [True], reasons(driver)
    send(driver, "a")
    assert named(driver) == [(0, "Ada")]


def test_a_connection_that_was_lost_is_renewed_without_a_retry(postgres: PostgresServer, database: Any) -> None:
    name = table(database, "id text PRIMARY KEY, name text", ("a", "Ada"))
    driver = driver_of(hr.postgres(name, dsn=postgres.dsn), cache="0 seconds", timeout="61 seconds")
    send(driver, "a")
    database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'headrace'")
    send(driver, "a")
    assert (named(driver), reasons(driver)) == ([(0, "Ada"), (0, "Ada")], [])


def test_a_server_that_is_away_is_the_reason_and_no_password_is_shown() -> None:
    driver = driver_of(hr.postgres("t", dsn="postgresql://me:s3same@127.0.0.1:1/db"))
    send(driver, "a")
    assert "OperationalError" in reasons(driver)[0]
    assert "s3same" not in reasons(driver)[0]


@pytest.fixture
def client(redis: RedisServer) -> Iterator[Redis]:
    with Redis.from_url(redis.url) as client:
        yield client


@pytest.mark.parametrize("form", ["hash", "string"])
@pytest.mark.parametrize("braces", [True, False])
def test_keys_of_redis_are_read_as_a_sink_writes_them(redis: RedisServer, client: Redis, form: str, braces: bool) -> None:
    name = f"asked-{next(_numbers)}"
    prefix = f"{{{name}}}" if braces else name
    rows = {"a:b": {"name": "Ada", "n2": 5, "ok": True, "at": "2026-01-01T00:00:00Z", "tags": ["x"], "more": "?"}, "c": {"name": "Cyd"}}
    for key, row in rows.items():
        if form == "string":
            client.set(f"{prefix}:{key}", json.dumps(row))
        else:
            client.hset(f"{prefix}:{key}", mapping={part: one if isinstance(one, str) else json.dumps(one) for part, one in row.items()})
    returns = "name string, n2 bigint, ok boolean, at timestamp, tags array<string>"
    driver = driver_of(hr.redis(name, url=redis.url, form=form, braces=braces), returns=returns, how="inner")
    send(driver, "a:b", "nobody", "c", None)
    found = {row["n"]: tuple(row[part] for part in ("name", "n2", "ok", "at", "tags")) for row in driver.rows("named")}
    assert found == {0: ("Ada", 5, True, datetime(2026, 1, 1, tzinfo=UTC), ["x"]), 2: ("Cyd", None, None, None, None)}
    assert reasons(driver) == []


@pytest.mark.parametrize(("form", "command", "said"), [
    ("hash", ("RPUSH", "x"), "WRONGTYPE"),
    ("string", ("RPUSH", "x"), "WRONGTYPE"),
    ("hash", ("HSET", "size", "big"), "column 'size': 'big' is not"),
    ("hash", ("HSET", "size", "1.5"), "column 'size': 1.5 is not"),
    ("hash", ("HSET", "size", '1, "x": 2'), "column 'size'"),
    ("hash", ("HSET", "size", b"\xff"), "invalid start byte"),
    ("hash", ("HSET", "other", "5"), "column 'size' has no value"),
    ("string", ("SET", "oops"), "not JSON"),
    ("string", ("SET", "[1]"), "not a JSON object"),
    ("string", ("SET", '{"size": "5"}'), "column 'size': '5' is not of type int"),
])  # fmt: skip
def test_what_cannot_be_read_fails_its_own_key(redis: RedisServer, client: Redis, form: str, command: tuple[Any, ...], said: str) -> None:
    name = f"asked-{next(_numbers)}"
    client.execute_command(command[0], f"{{{name}}}:bad", *command[1:])
    if form == "string":
        client.set(f"{{{name}}}:good", '{"size": 5}')
    else:
        client.hset(f"{{{name}}}:good", "size", "5")
    driver = driver_of(hr.redis(name, url=redis.url, form=form), returns="size int not null", how="inner")
    send(driver, "bad", "good")
    assert [(row["n"], row["size"]) for row in driver.rows("named")] == [(1, 5)]
    assert [said in reason for reason in reasons(driver)] == [True], reasons(driver)


def test_a_row_that_a_sink_wrote_is_found(redis: RedisServer) -> None:
    target = hr.redis(f"asked-{next(_numbers)}", url=redis.url)
    output = target.output(schema("shop int, part string, price double"), ("shop", "part"))
    output.write(Writer("job", "sink"), 0, Changes(pl.DataFrame({"shop": [7], "part": ["a:b"], "price": [2.5]})), Letters())
    app = Declaration("reader")
    orders = app.stream("orders", "n int, shop int, part string", key="n")
    app.sink(orders.lookup(target, on=["shop", "part"], returns="price double"), hr.log("out"), name="out")
    with TestDriver(app, shards=1) as driver:
        driver.send("orders", [{"n": 1, "shop": 7, "part": "a:b"}, {"n": 2, "shop": 7, "part": "a"}])
        assert [(row["n"], row["price"]) for row in driver.rows("out")] == [(1, 2.5)]


def test_what_redis_cannot_answer_is_refused_when_it_is_declared(redis: RedisServer) -> None:
    with pytest.raises(SettingsError, match="which has no rows"):
        driver_of(hr.redis("r", url=redis.url, form="sorted set", score="n"))
    with pytest.raises(SettingsError, match="which has text"):
        driver_of(hr.redis("r", url=redis.url), returns="name binary")
    with pytest.raises(SettingsError, match="braces=False is for lookups"):
        hr.redis("r", url=redis.url, braces=False).check(schema("a int"), ("a",))
