"""Keys of a real Redis server as an output."""

from __future__ import annotations

import itertools
import json
import threading
from typing import Any

import pytest
from redis import Redis, exceptions

import headrace as hr
from headrace.connectors.redis.output import RedisOutput
from headrace.ops.servers.redis import RedisServer
from headrace.testing.conformance import CASES, COLUMNS, KEY, Subject
from headrace.testing.conformance.cases import a_writer_killed_at_any_step_has_written_all_or_nothing, expect
from headrace.testing.conformance.subject import SubjectWriter, made

_numbers = itertools.count()


class RedisSubject(Subject):
    key = KEY
    stall = "redis.execute.before"
    away = (exceptions.ConnectionError, exceptions.TimeoutError)

    def __init__(self, server: RedisServer, query: str = "", **options: Any) -> None:
        self.target = hr.redis(f"out-{next(_numbers)}", url=server.url + query, **options)
        self._server = Redis.from_url(server.url, decode_responses=True)
        self.output().prepare(2)

    @property
    def client(self) -> Any:
        return self._server

    def output(self) -> RedisOutput:
        return self.target.output(COLUMNS, self.key)

    def rows(self) -> list[dict[str, Any]]:
        return self._read([name for name in self.client.scan_iter(f"{self.target.tag}:*") if ":headrace:" not in name])

    def parts(self) -> list[list[dict[str, Any]]]:
        return [self._read([f"{self.target.tag}:{row['user']}" for row in made(1)])]

    def _read(self, names: list[str]) -> list[dict[str, Any]]:
        """All keys at one moment."""
        with self.client.pipeline(transaction=True) as step:
            for name in names:
                step.get(name) if self.target.form == "string" else step.hgetall(name)
            held = step.execute()
        if self.target.form == "string":
            return [json.loads(text) for text in held if text is not None]
        return [{"user": row["user"], "n": int(row["n"]), "note": row.get("note")} for row in held if row]


class RankedSubject(RedisSubject):
    """A sorted set, which holds a key and its score, and no more: of what is written the note is always the same."""

    def __init__(self, server: RedisServer) -> None:
        super().__init__(server, form="sorted set", score="n")

    def rows(self) -> list[dict[str, Any]]:
        ranked = self.client.zrange(self.target.tag, 0, -1, withscores=True)
        return [{"user": user, "n": int(score), "note": "ok"} for user, score in ranked]

    def parts(self) -> list[list[dict[str, Any]]]:
        return [self.rows()]


@pytest.mark.parametrize("form", ["hash", "string"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_keys_keep_what_an_output_promises(case: Any, form: str, redis: RedisServer) -> None:
    case(RedisSubject(redis, form=form))


@pytest.mark.parametrize("case", [a_writer_killed_at_any_step_has_written_all_or_nothing])
def test_a_sorted_set_keeps_what_an_output_promises(case: Any, redis: RedisServer) -> None:
    case(RankedSubject(redis))


def test_a_sorted_set_ranks_keys_by_their_score(redis: RedisServer) -> None:
    subject = RedisSubject(redis, form="sorted set", score="n")
    hand = SubjectWriter(subject)
    hand.write(1, made(1, users=3))
    hand.write(2, [{"user": "u0", "n": 500, "note": ""}, {"user": "u2", "n": None, "note": ""}], gone=made(1)[5:])
    assert subject.client.zrevrange(subject.target.tag, 0, -1, withscores=True) == [("u0", 500.0), ("u1", 101.0)]


def test_what_is_not_written_again_expires(redis: RedisServer) -> None:
    subject = RedisSubject(redis, form="string", ttl="1 hour")
    SubjectWriter(subject).write(1, made(1))
    assert 3_500_000 < subject.client.pttl(f"{subject.target.tag}:u0") <= 3_600_000
    assert subject.client.pttl(f"{subject.target.tag}:headrace:job-1/{subject.sink}/0") == -1


def test_keys_of_several_columns_are_told_apart(redis: RedisServer) -> None:
    output = hr.redis("pairs", url=redis.url, form="string").output(COLUMNS, ("user", "note"))
    names = [name for row in ({"user": "a:b", "note": "c"}, {"user": "a", "note": "b:c"}) for name in output._names(_frame(row))]
    assert names == ["a%3Ab:c", "a:b%3Ac"]


def test_a_server_that_was_killed_is_waited_for_and_keeps_what_it_had() -> None:
    with RedisServer() as server:
        subject = RedisSubject(server)
        hand = SubjectWriter(subject)
        hand.write(1, made(1))
        server.kill()
        back = threading.Timer(0.3, server.start)
        back.start()
        assert not hand.write(1, made(1))
        assert hand.write(2, made(2)[:2])
        back.join()
        expect(subject, [*made(2)[:2], *made(1)[2:]])


def test_who_is_not_let_in_is_told_at_once_and_without_the_password(redis: RedisServer) -> None:
    wrong = redis.url.replace("redis://:", "redis://:not-")
    with pytest.raises(hr.ConnectorError, match="preparing hash t of Redis failed") as stopped:
        hr.redis("t", url=wrong).output(COLUMNS, KEY).prepare(1)
    assert "not-" not in str(stopped.value)


def _frame(row: dict[str, Any]) -> Any:
    import polars as pl

    return pl.DataFrame([{"n": 1, **row}])
