"""The keys of a sink in Redis as a user declares them; nothing is connected here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.connectors.targets import Changeable, need_client
from headrace.core.durations import Duration, duration
from headrace.core.errors import SchemaError, SettingsError
from headrace.core.names import Names, listed
from headrace.core.secret import Secret

if TYPE_CHECKING:
    from headrace.connectors.redis.output import RedisOutput

HASH, STRING, SORTED_SET = "hash", "string", "sorted set"


@dataclass(frozen=True)
class RedisKeys(Changeable):
    """Under which name, on which server, and in which form rows are held; see `redis`."""

    name: str
    url: Secret
    key: tuple[str, ...] = ()
    form: str = HASH
    score: str | None = None
    ttl: timedelta | None = None
    patience: timedelta = timedelta(minutes=2)

    def __post_init__(self) -> None:
        if self.form not in (HASH, STRING, SORTED_SET):
            raise SettingsError(f"form={self.form!r} is not known", hint=f"{HASH!r}, {STRING!r} or {SORTED_SET!r}")
        if (self.form == SORTED_SET) != (self.score is not None):
            raise SettingsError(
                f"redis {self.name!r}: a sorted set has a score, and only that", hint=f'score="column" with form={SORTED_SET!r}'
            )
        if self.form == SORTED_SET and self.ttl is not None:
            raise SettingsError(f"redis {self.name!r}: members of a sorted set do not expire", hint="leave ttl= away")
        if not self.name or set(self.name) & set("{}"):
            raise SettingsError(f"{self.name!r} is no name for keys of Redis", hint="any text without braces")

    @property
    def tag(self) -> str:
        """What every key of the sink begins with: by its braces all are in one slot of a cluster, so that one step can change them."""
        return f"{{{self.name}}}"

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if rows cannot be held like this, or Redis's client is missing: before anything runs."""
        need_client("redis", "Redis's client", "redis")
        if not key:
            raise SchemaError(f"{self} holds one row a key, and the records have none", hint='say by which column: key="..."')
        if self.score is not None:
            if self.score not in columns.names:
                raise SchemaError(f"score={self.score!r}: there is no such column", hint=f"columns: {', '.join(columns.names)}")
            kind = columns.field(self.score).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise SchemaError(f"score={self.score!r} is {kind}", hint="a score is a number")

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> RedisOutput:
        """The keys as a job writes them."""
        from headrace.connectors.redis.output import RedisOutput

        return RedisOutput(self, columns, key)

    def __str__(self) -> str:
        return f"{self.form} {self.name} of Redis"


def redis(name: str, *, url: str | Secret, key: Names = (), ttl: Duration | None = None, **options: Any) -> RedisKeys:
    """Keys of Redis as the target of a sink: the latest row of each key, exactly once.

    In the form "hash", `{name}:<key>` is a hash with a field for each column that has a value; as "string" it is the row as JSON; as
    "sorted set", `{name}` has the key as a member and the column `score` as its score. The parts of a key of several columns are joined
    by colons. With `ttl` a row is gone so long after it was last written. `url` is `redis://:password@host:6379/0`, and shows nowhere.
    Options are `form`, `score`, and `patience`, how long a server that is away is waited for.

    >>> redis("players", url="redis://:s3same@localhost", form="sorted set", score="points")
    RedisKeys(name='players', url=Secret(***), key=(), form='sorted set', score='points', ...)
    """
    hidden = url if isinstance(url, Secret) else Secret(url)
    lasting = None if ttl is None else duration(ttl)
    patience = duration(options.pop("patience", "2 minutes"))
    return RedisKeys(name, hidden, listed(key), ttl=lasting, patience=patience, **options)
