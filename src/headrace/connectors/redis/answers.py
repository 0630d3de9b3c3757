"""Keys of Redis as the other system of a lookup: one round trip for a batch of keys.

Of a hash only the declared fields are read, however many it has; one that it does not have is null.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
from redis import Redis, RedisCluster
from redis.exceptions import ResponseError

from headrace.connectors.redis.client import once
from headrace.connectors.redis.declaration import STRING, RedisKeys
from headrace.connectors.redis.names import names_of
from headrace.plan.joins.remote_lookup import Question, Unreadable
from headrace.schema.codecs.json import JsonCodec


@dataclass(frozen=True)
class RedisAnswers:
    """Asks for hashes, or for texts that are JSON objects, under the names that a sink gives them."""

    target: RedisKeys
    question: Question

    def __call__(self, keys: pa.Table) -> list[Any]:
        frame = pl.from_arrow(keys)
        assert isinstance(frame, pl.DataFrame)
        names = [f"{self.target.tag}:{name}" for name in names_of(frame)]
        found = once(self.target, lambda client: self._texts(client, names))
        asked = [row for row, text in zip(keys.to_pylist(), found, strict=True) if text is not None]
        texts = [text for text in found if text is not None]
        rows: list[Any] = [Unreadable(key, str(text)) for key, text in zip(asked, texts, strict=True) if isinstance(text, Exception)]
        asked = [key for key, text in zip(asked, texts, strict=True) if isinstance(text, bytes)]
        decoded = JsonCodec(self.question.returns).decode([text for text in texts if isinstance(text, bytes)])
        rows += [asked[place] | row for place, row in zip(decoded.places.tolist(), decoded.table.to_pylist(), strict=True)]
        return rows + [Unreadable(asked[place], reason) for place, reason in decoded.bad.items()]

    def _texts(self, client: Redis | RedisCluster, names: list[str]) -> list[bytes | Exception | None]:
        """A JSON object for each name, nothing, or why there is none."""
        fields = self.question.returns.names
        with client.pipeline(transaction=False) as step:
            for name in names:
                if self.target.form == STRING:
                    step.get(name)
                else:
                    step.hmget(name, fields)
                    step.exists(name)
            found = step.execute(raise_on_error=False)
        for error in found:
            if isinstance(error, Exception) and not isinstance(error, ResponseError):
                raise error
        if self.target.form == STRING:
            return found
        return [self._object(values, there) for values, there in zip(found[::2], found[1::2], strict=True)]

    def _object(self, values: Any, there: int) -> bytes | Exception | None:
        """The fields of a hash as a JSON object."""
        if isinstance(values, Exception) or not there:
            return values if isinstance(values, Exception) else None
        try:
            pairs = zip(self.question.returns, values, strict=True)
            return json.dumps({column.name: None if value is None else _value(column, value.decode()) for column, value in pairs}).encode()
        except UnicodeDecodeError as error:
            return error


def _value(column: pa.Field, text: str) -> Any:
    """The text of a field as its type has it in JSON; what is not JSON stays text, which no number and no list accepts."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_nested(kind)):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
