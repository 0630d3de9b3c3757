"""A topic of Kafka as a user declares it, to be read or written; nothing is connected here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from headrace.connectors.targets import need_client
from headrace.core.counts import counts
from headrace.core.durations import duration
from headrace.core.errors import SchemaError, SettingsError
from headrace.core.names import listed
from headrace.core.schema import TIMESTAMP, type_name
from headrace.core.secret import Secret
from headrace.schema.formats import Format, Json, Plain, format_of

if TYPE_CHECKING:
    from headrace.connectors.kafka.input import KafkaInput
    from headrace.connectors.kafka.output import KafkaOutput

Start: TypeAlias = str | datetime | Mapping[int, int]

HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("name", pa.string()), pa.field("value", pa.binary())])))
_ISOLATIONS = ("read_committed", "read_uncommitted")
_SECRET = ("password", "secret", "private", "credential", "token", ".pem", "oauthbearer.config")
# What a source stands on; with other values records would be lost or read twice.
_OURS = {
    "bootstrap.servers": "servers=", "group.id": "group=", "isolation.level": "isolation=", "auto.offset.reset": "start=",
    "enable.auto.commit": "", "enable.partition.eof": "", "enable.auto.offset.store": "",
    "transactional.id": "", "enable.idempotence": "", "acks": "",
    # What librdkafka calls two of them, too.
    "metadata.broker.list": "servers=", "request.required.acks": "",
}  # fmt: skip
_KINDS = {"key_as": (pa.string(), pa.binary()), "timestamp_as": (TIMESTAMP,), "headers_as": (HEADERS,)}


@dataclass(frozen=True)
class KafkaTopic:
    """Which topic, on which brokers, how its records are encoded, and where to begin; see `kafka`."""

    topic: str
    servers: str
    format: Format
    start: Start = "earliest"
    isolation: str = "read_committed"
    group: str | None = None
    rows_per_epoch: int | None = None
    key_as: str | None = None
    timestamp_as: str | None = None
    headers_as: str | None = None
    settings: Mapping[str, str | Secret] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    append_only: bool = False
    at_least_once: bool = False
    patience: timedelta = timedelta(minutes=2)
    table_by: tuple[str, ...] = ()
    """As a table, the columns that a record's key holds."""

    def __post_init__(self) -> None:
        if isinstance(self.start, str) and self.start not in ("earliest", "latest"):
            raise SettingsError(f"start={self.start!r} is not a place in a topic", hint='"earliest", "latest", a datetime, or offsets')
        if isinstance(self.start, datetime) and self.start.tzinfo is None:
            raise SettingsError(f"start={self.start!r} has no time zone", hint="give tzinfo=UTC")
        if self.isolation not in _ISOLATIONS:
            raise SettingsError(f"isolation={self.isolation!r} is not known", hint=" or ".join(_ISOLATIONS))
        if self.rows_per_epoch is not None and not counts(self.rows_per_epoch):
            raise SettingsError(
                f"rows_per_epoch={self.rows_per_epoch!r} lets no record in", hint="give a whole number above zero, or leave it away"
            )
        for name in self.settings:
            if name in _OURS:
                instead = f"use {_OURS[name]}" if _OURS[name] else "leave it away"
                raise SettingsError(f"{name} of topic {self.topic!r} cannot be set", why="exactly once stands on it", hint=instead)

    def check(self, columns: pa.Schema, key: tuple[str, ...] | None = None) -> None:
        """Raise if the topic cannot give these columns or, with a key, take them, or Kafka's client is missing: before anything runs."""
        need_client("confluent_kafka", "Kafka's client", "kafka")
        if key is not None:
            self._check_writing(columns)
            return
        payload = self.payload(columns)
        if len(payload):
            self.format.codec(payload)

    def as_table(self, key: tuple[str, ...]) -> KafkaTopic:
        """The topic as a table: its latest record of each key holds, and a tombstone removes it."""
        return replace(self, table_by=key)

    def input(self, columns: pa.Schema, time: str | None, app: str) -> KafkaInput:
        """The topic as an app's job reads it."""
        from headrace.connectors.kafka.input import KafkaInput

        return KafkaInput(self, columns, time, self.group or f"headrace-{app}")

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> KafkaOutput:
        """The topic as a job writes it."""
        from headrace.connectors.kafka.output import KafkaOutput

        return KafkaOutput(self, columns, key)

    @property
    def replaces(self) -> bool:
        """A key of facts says in which partition they are, no more."""
        return False

    def __str__(self) -> str:
        return f"topic {self.topic} of Kafka"

    def _check_writing(self, columns: pa.Schema) -> None:
        if isinstance(self.format, Plain) and (len(columns) != 1 or columns.types[0] not in (pa.string(), pa.binary())):
            raise SchemaError(f"{self} takes one column of string or binary as it is", hint='select it, or use format="json"')
        if not isinstance(self.format, Plain | Json):
            raise SettingsError(f"{self}: records are written as JSON or as they are", hint='format="json" or "bytes"')

    @property
    def taken(self) -> dict[str, str]:
        """The columns that come from around a record's value: what each is, by its name."""
        named = {"key_as": self.key_as, "timestamp_as": self.timestamp_as, "headers_as": self.headers_as}
        return {column: option for option, column in named.items() if column is not None}

    def payload(self, columns: pa.Schema) -> pa.Schema:
        """The columns that a record's value holds, of those that a stream declares."""
        for name, option in self.taken.items():
            if name not in columns.names:
                raise SchemaError(f"{option}={name!r}: there is no such column", hint=f"columns: {', '.join(columns.names)}")
            kinds = _KINDS[option]
            if columns.field(name).type not in kinds:
                raise SchemaError(
                    f"{option}={name!r} is declared as {type_name(columns.field(name).type)}",
                    hint=f"declare it as {' or '.join(type_name(kind) for kind in kinds)}",
                )
        return pa.schema([column for column in columns if column.name not in self.taken])


def kafka(
    topic: str,
    *,
    servers: str,
    format: str | Format = "json",  # noqa: A002 - what it is called everywhere
    settings: Mapping[str, str | Secret] | None = None,
    **options: Any,
) -> KafkaTopic:
    """A topic of Kafka as the source of a stream, or as the target of a sink.

    `format` is "json", "bytes", `hr.avro(...)` or `hr.protobuf(...)`; records that cannot be decoded go to the dead letters of the
    stream. `settings` are the client's own, by Kafka's names (`security.protocol`, `sasl.mechanism`, `ssl.ca.location`, ...); passwords
    show nowhere. Brokers that are away are waited for as long as `patience`, two minutes. Options:

    - `start`, where a new job begins: "earliest", "latest", a datetime, or an offset for each partition; partitions that are added
      later are read from their beginning.
    - `group`, under which Kafka's tools show how far the job is, by default `headrace-<app>`; the job goes on from its checkpoint.
    - `rows_per_epoch`, what an epoch takes in at most; `isolation`, "read_committed" or "read_uncommitted".
    - `key_as`, `timestamp_as` and `headers_as`, columns for the record's key (string or binary), for Kafka's timestamp, and for headers
      (`array<struct<name:string,value:binary>>`).

    As a target it is written exactly once, in transactions that hold the number of the epoch, too; readers need `read_committed`.
    Records are JSON objects, or as they are with `format="bytes"`. Results that change are upserts by their key, and tombstones. Options:

    - `key`, the columns that make a record's key and so its partition, as Kafka's own clients choose it; results that change have theirs.
    - `at_least_once=True` leaves transactions out: records of an epoch that is repeated after a crash are there twice.
    - `append_only=True` refuses results that change.

    >>> kafka("payments", servers="broker:9092", settings={"sasl.password": "s3same"}).settings
    {'sasl.password': Secret(***)}
    """
    hidden = {name: Secret(value) if isinstance(value, str) and _secret(name) else value for name, value in (settings or {}).items()}
    key, patience = options.pop("key", ()), duration(options.pop("patience", "2 minutes"))
    return KafkaTopic(topic, servers, format_of(format), settings=hidden, key=listed(key), patience=patience, **options)


def _secret(name: str) -> bool:
    return any(part in name for part in _SECRET)
