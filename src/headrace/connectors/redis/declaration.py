"""The keys of a sink in Redis as a user declares them; nothing is connected here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.connectors.targets import need_client
from headrace.core.columns.names import Names, listed
from headrace.core.durations import Duration, duration
from headrace.core.errors import SchemaError, SettingsError
from headrace.core.nearest import choices
from headrace.core.promise import Promise, Takes
from headrace.core.secret import Secret
from headrace.core.where import says_where
from headrace.plan.joins.remote_lookup import Question

if TYPE_CHECKING:
    from headrace.connectors.redis.answers import RedisAnswers
    from headrace.connectors.redis.output import RedisOutput

HASH, STRING, SORTED_SET = "hash", "string", "sorted set"


@dataclass(frozen=True)
class RedisKeys:
    """The name, the server, and the form of rows; see `redis`."""

    name: str
    url: Secret
    key: tuple[str, ...] = ()
    form: str = HASH
    score: str | None = None
    ttl: timedelta | None = None
    patience: timedelta = timedelta(minutes=2)
    braces: bool = True

    def __post_init__(self) -> None:
        if self.form not in (HASH, STRING, SORTED_SET):
            raise SettingsError(f"form={self.form!r} is not known", hint=f"{HASH!r}, {STRING!r} or {SORTED_SET!r}")
        if (self.form == SORTED_SET) != (self.score is not None):
            raise SettingsError(
                f"redis {self.name!r}: a sorted set has a score, and only that", hint=f'score="column" with form={SORTED_SET!r}'
            )
        if self.form == SORTED_SET and self.ttl is not None:
            raise SettingsError(f"redis {self.name!r}: members of a sorted set do not expire", hint="leave ttl= out")
        if not self.name or set(self.name) & set("{}"):
            raise SettingsError(f"{self.name!r} is not a name for keys of Redis", hint="any text without braces")

    @property
    def tag(self) -> str:
        """The prefix of every key of the sink: by its braces all keys are in one slot of a cluster, so that one step can change them."""
        return f"{{{self.name}}}" if self.braces else self.name

    @property
    def promise(self) -> Promise:
        return Promise(
            Takes.LATEST,
            "exactly once, if the server keeps what it acknowledged",
            "rows and the epoch of the task in one MULTI, under WATCH",
            "a task's epoch at once",
        )

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if rows cannot be stored in this form, or Redis's client is missing: before anything runs."""
        need_client("redis", "Redis's client", "redis")
        if not self.braces:
            raise SettingsError(
                f"redis {self.name!r} with braces=False is for lookups",
                why="without them the keys of a sink are on several nodes of a cluster, and no step changes them together",
                hint="leave braces= out",
            )
        if not key:
            raise SchemaError(f"{self} stores one row for each key, and the records have none", hint='name its column: key="..."')
        if self.score is not None:
            if self.score not in columns.names:
                raise SchemaError(f"score={self.score!r}: there is no such column", hint=choices(self.score, columns.names, "columns"))
            kind = columns.field(self.score).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise SchemaError(f"score={self.score!r} is {kind}", hint="a score is a number")

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> RedisOutput:
        """The keys as a job writes them."""
        from headrace.connectors.redis.output import RedisOutput

        return RedisOutput(self, columns, key)

    def answers(self, question: Question) -> RedisAnswers:
        """The keys as a lookup asks for them."""
        need_client("redis", "Redis's client", "redis")
        from headrace.connectors.redis.answers import RedisAnswers

        if self.form == SORTED_SET:
            raise SettingsError(f"lookup in {self}, which has no rows", hint=f"form={HASH!r} or {STRING!r}")
        binary = next((column.name for column in question.returns if pa.types.is_binary(column.type)), None)
        if binary is not None:
            raise SettingsError(
                f"lookup of {binary!r} in {self}, which has text", hint=f"{binary} string, and unbase64({binary}) in the next step"
            )
        return RedisAnswers(self, question)

    def __str__(self) -> str:
        return f"{self.form} {self.name} of Redis"


@says_where
def redis(  # noqa: PLR0913 - one option for each thing that may differ
    name: str,
    *,
    url: str | Secret,
    key: Names = (),
    form: str = HASH,
    score: str | None = None,
    ttl: Duration | None = None,
    patience: Duration = "2 minutes",
    braces: bool = True,
) -> RedisKeys:
    """Keys of Redis as the target of a sink: the latest row of each key, exactly once.

    `form` is "hash" (`{name}:<key>` is a hash with a field for each column that has a value), "string" (the row as JSON), or "sorted set"
    (`{name}` has the key as a member and the column `score` as its score). Colons join the parts of a key of several columns. With `ttl`
    Redis removes a row this long after it was last written. `url` is `redis://:password@host:6379/0`; no message shows it. A job waits
    for a server that is away as long as `patience`, then stops.

    `stream.lookup(hr.redis(name, url=...), ...)` asks for the hash or the JSON text of each key; with `braces=False` for those that another
    system wrote: `name:<key>`.

    >>> redis("players", url="redis://:s3same@localhost", form="sorted set", score="points")
    RedisKeys(name='players', url=Secret(***), key=(), form='sorted set', score='points', ...)
    """
    hidden = url if isinstance(url, Secret) else Secret(url)
    expires_after = None if ttl is None else duration(ttl)
    return RedisKeys(name, hidden, listed(key), form, score, expires_after, duration(patience), braces)
