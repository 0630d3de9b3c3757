"""Keys of Redis as an output of the engine: rows and the number of their epoch change in one step.

The step is MULTI and EXEC, under WATCH of the key that contains the epoch: if another writer changed that meanwhile, nothing happens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
from redis import Redis
from redis.client import Pipeline
from redis.exceptions import WatchError

from headrace.connectors.output import Changes, DeadLetters, Writer
from headrace.connectors.redis.client import repeatedly
from headrace.connectors.redis.declaration import SORTED_SET, STRING, RedisKeys
from headrace.connectors.redis.names import OWN, names_of, text_of
from headrace.core import failpoints
from headrace.core.errors import SchemaError
from headrace.schema.legible import as_json


@dataclass(frozen=True)
class RedisOutput:
    """The keys of a sink, the columns of its rows, and the key that identifies them."""

    target: RedisKeys
    columns: pa.Schema
    key: tuple[str, ...]

    def prepare(self, tasks: int) -> None:
        found = repeatedly(self.target, "preparing", lambda client: str(client.type(self.target.tag), "ascii"))  # type: ignore[arg-type] # bytes
        if self.target.form == SORTED_SET and found not in ("none", "zset"):
            raise SchemaError(f"the key {self.target.tag} of Redis is a {found}", hint="delete it, or use another name")

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        return repeatedly(self.target, "writing to", lambda client: self._write(client, writer, epoch, changes))

    def publish(self, job: str, sink: str, epoch: int) -> None:
        """There is nothing to publish: executed changes are visible at once."""

    def last_epoch(self, writer: Writer) -> int | None:
        _, epoch = repeatedly(self.target, "looking at", lambda client: _parsed(client.get(self._mark(writer))))
        return None if epoch < 0 else epoch

    def _mark(self, writer: Writer) -> str:
        """The key that contains the last run and epoch of a writer."""
        return f"{self.target.tag}:{OWN}{writer.name}"

    def _write(self, client: Redis, writer: Writer, epoch: int, changes: Changes) -> bool:
        mark = self._mark(writer)
        while True:
            with client.pipeline(transaction=True) as step:
                step.watch(mark)  # type: ignore[no-untyped-call] # it has no annotations
                generation, last = _parsed(step.get(mark))
                if generation > writer.generation:
                    raise writer.fenced()
                if last >= epoch and generation == writer.generation:
                    return False
                step.multi()
                if last < epoch:
                    self._fill(step, changes)
                step.set(mark, f"{writer.generation} {max(last, epoch)}")
                failpoints.reach("redis.execute.before")
                try:
                    step.execute()
                except WatchError:
                    continue
                failpoints.reach("redis.execute.after")
                return last < epoch

    def _fill(self, step: Pipeline, changes: Changes) -> None:
        target, ttl = self.target, self.target.ttl
        kept, gone = changes.upserts, list(self._names(changes.deletes))
        if target.form == SORTED_SET:
            assert target.score is not None
            scores = dict(zip(self._names(kept), kept.get_column(target.score).to_list(), strict=True))
            # A row without a score has no place.
            gone += [name for name, score in scores.items() if score is None]
            if ranked := {name: score for name, score in scores.items() if score is not None}:
                step.zadd(target.tag, ranked)
            if gone:
                step.zrem(target.tag, *gone)
            return
        for name, text in zip(self._names(kept), as_json(kept.select(self.columns.names)).to_list(), strict=True):
            key = f"{target.tag}:{name}"
            if target.form == STRING:
                step.set(key, text, px=ttl)
                continue
            step.delete(key)
            step.hset(key, mapping=_fields(json.loads(text)))
            if ttl is not None:
                step.pexpire(key, ttl)
        if gone:
            step.delete(*(f"{target.tag}:{name}" for name in gone))

    def _names(self, rows: pl.DataFrame) -> Iterator[str]:
        return names_of(rows.select(self.key))


def _parsed(mark: Any) -> tuple[int, int]:
    """The run and the epoch of the last write."""
    if mark is None:
        return -1, -1
    generation, epoch = mark.split()
    return int(generation), int(epoch)


def _fields(row: dict[str, Any]) -> dict[Any, Any]:
    return {name: text_of(value) for name, value in row.items() if value is not None}
