"""A topic's declaration: its partitions, columns, key, time and settings, kept as one checked JSON file."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache

import pyarrow as pa

from headrace.core.columns.schema import SchemaLike, declared, schema
from headrace.core.counts import counts
from headrace.core.errors import LogError, SchemaError, SettingsError
from headrace.core.nearest import choices
from headrace.log.errors import CorruptLog
from headrace.log.files.checksum import checksum

RESERVED = ("_key", "_time", "_headers", "_tombstone", "_offset", "_partition", "_sequence", "_appended_at")
BYTES = pa.schema([pa.field("value", pa.binary())])

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_POLICIES = ("delete", "compact", "compact,delete")
_UNLIMITED = -1


def _setting(name: str, default: int | str) -> int | str:
    return field(default=default, metadata={"name": name})


@dataclass(frozen=True)
class TopicConfig:
    """Per-topic settings under Kafka's names; -1 means without limit.

    Retention keeps everything unless told otherwise, and `message.timestamp.after.max.ms` refuses times from the future.
    """

    retention_ms: int = _setting("retention.ms", _UNLIMITED)  # type: ignore[assignment]
    retention_bytes: int = _setting("retention.bytes", _UNLIMITED)  # type: ignore[assignment]
    segment_bytes: int = _setting("segment.bytes", 256 * 1024 * 1024)  # type: ignore[assignment]
    cleanup_policy: str = _setting("cleanup.policy", "delete")  # type: ignore[assignment]
    min_compaction_lag_ms: int = _setting("min.compaction.lag.ms", 0)  # type: ignore[assignment]
    delete_retention_ms: int = _setting("delete.retention.ms", 86_400_000)  # type: ignore[assignment]
    max_message_bytes: int = _setting("max.message.bytes", 1_048_576)  # type: ignore[assignment]
    timestamp_after_max_ms: int = _setting("message.timestamp.after.max.ms", 3_600_000)  # type: ignore[assignment]
    compression_type: str = _setting("compression.type", "none")  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.cleanup_policy not in _POLICIES:
            raise SettingsError(f"cleanup.policy {self.cleanup_policy!r} is not known", hint=f"use one of {', '.join(_POLICIES)}")
        if self.compression_type not in ("none", "lz4", "zstd"):
            raise SettingsError(f"compression.type {self.compression_type!r} is not known", hint="use none, lz4 or zstd")
        if self.segment_bytes < 1024:
            raise SettingsError(f"segment.bytes {self.segment_bytes} is too small", hint="use at least 1024")
        if self.max_message_bytes < 1:
            raise SettingsError(f"max.message.bytes {self.max_message_bytes} admits no record", hint="use at least 1")

    @property
    def compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    def with_settings(self, settings: Mapping[str, int | str]) -> TopicConfig:
        """The same with some settings changed, given under Kafka's names."""
        known = {item.metadata["name"]: item.name for item in fields(self)}
        changes: dict[str, int | str] = {}
        for name, value in settings.items():
            if name not in known:
                raise SettingsError(f"{name!r} is not a topic setting", hint=choices(name, known, "settings"))
            changes[known[name]] = _same_kind(name, value, getattr(self, known[name]))
        return replace(self, **changes)  # type: ignore[arg-type]

    def settings(self) -> dict[str, int | str]:
        """Every setting under its Kafka name."""
        return {item.metadata["name"]: getattr(self, item.name) for item in fields(self)}


def _same_kind(name: str, value: int | str, present: int | str) -> int | str:
    if isinstance(present, str):
        return str(value)
    try:
        return int(value)
    except ValueError as error:
        raise SettingsError(f"{name} takes a whole number, not {value!r}", hint=f"for example {name}={present}") from error


@dataclass(frozen=True)
class Topic:
    """The declaration of a topic. `columns` are the record's own; without a schema there is one column `value` of bytes."""

    name: str
    partitions: int
    columns: pa.Schema = BYTES
    key: tuple[str, ...] = ()
    time: str | None = None
    config: TopicConfig = TopicConfig()
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created_at: int = 0

    def __post_init__(self) -> None:
        check_name(self.name)
        if not counts(self.partitions):
            raise LogError(f"topic {self.name!r} with {self.partitions!r} partitions", hint="give a whole number above zero")
        if not self.columns.names:
            raise SchemaError(f"topic {self.name!r} has no columns", hint='give schema="name type, ...", or none for a topic of bytes')
        for name in self.columns.names:
            if name in RESERVED:
                raise SchemaError(
                    f"column {name!r} of topic {self.name!r} has a name that the log itself uses",
                    hint=f"rename it; reserved: {', '.join(RESERVED)}",
                )
        for name in (*self.key, *([self.time] if self.time else [])):
            if name not in self.columns.names:
                raise SchemaError(f"topic {self.name!r} has no column {name!r}", hint=choices(name, self.columns.names, "columns"))
        if self.time and not pa.types.is_timestamp(self.columns.field(self.time).type):
            raise SchemaError(
                f"time column {self.time!r} of topic {self.name!r} is {self.columns.field(self.time).type}", hint="declare it as timestamp"
            )

    @cached_property
    def structured(self) -> bool:
        """Whether records have columns; else they are bytes."""
        return not self.columns.equals(BYTES)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the record's own columns."""
        return frozenset(self.columns.names)

    @property
    def internal(self) -> bool:
        return self.name.startswith("__")

    def to_json(self) -> bytes:
        content = {
            "name": self.name, "id": self.id, "partitions": self.partitions, "created_at": self.created_at,
            "columns": None if self.columns.equals(BYTES) else declared(self.columns),
            "key": list(self.key), "time": self.time, "config": self.config.settings(),
        }  # fmt: skip
        text = json.dumps(content, sort_keys=True)
        return json.dumps({"crc32c": checksum(text.encode()), "topic": content}, sort_keys=True, indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes, path: str) -> Topic:
        found = _parsed(data)
        if found is None:
            raise CorruptLog(
                f"{path} has been changed or damaged",
                why="the topic's columns and settings are in it",
                hint="restore the file from a copy; the segments are untouched",
            )
        return found


@lru_cache(maxsize=256)
def _parsed(data: bytes) -> Topic | None:
    """The topic that a file declares, None if the file is not what was written."""
    try:
        document = json.loads(data)
        content = document["topic"]
        text = json.dumps(content, sort_keys=True)
        changed = checksum(text.encode()) != document["crc32c"]
    except (ValueError, KeyError, TypeError):
        return None
    if changed:
        return None
    return Topic(
        name=content["name"], id=content["id"], partitions=content["partitions"], created_at=content["created_at"],
        columns=topic_columns(content["columns"]), key=tuple(content["key"]), time=content["time"],
        config=TopicConfig().with_settings(content["config"]),
    )  # fmt: skip


def topic_columns(columns: SchemaLike | None) -> pa.Schema:
    return BYTES if columns is None else schema(columns)


def check_name(name: str, kind: str = "topic") -> None:
    """Refuse names that Kafka refuses; they become directories.

    >>> check_name("page_views")
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (".", ".."):
        article = "an" if kind.startswith("a") else "a"
        raise LogError(
            f"{name!r} is not {article} {kind} name", hint="use 1 to 249 of letters, digits, '.', '_' and '-', but not '.' or '..'"
        )


def extended(topic: Topic, columns: pa.Schema) -> pa.Schema:
    """The columns of a topic with more at the end."""
    for place, column in enumerate(topic.columns):
        if place >= len(columns) or not columns.field(place).equals(column):
            raise SchemaError(
                f"topic {topic.name!r}: column {column.name!r} cannot be changed or removed",
                why="stored records have it",
                hint="columns can only be added at the end",
            )
    if not all(column.nullable for column in list(columns)[len(topic.columns) :]):
        raise SchemaError(f"topic {topic.name!r}: a new column cannot be NOT NULL", why="stored records have no value for it")
    return columns
