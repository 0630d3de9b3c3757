"""A topic of Kafka as a user declares it, as a source or a target; nothing is connected here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from headrace.connectors.targets import need_client, need_text
from headrace.core.columns.names import Names, listed
from headrace.core.columns.schema import TIMESTAMP, type_name
from headrace.core.counts import counts
from headrace.core.durations import Duration, duration
from headrace.core.errors import SchemaError, SettingsError
from headrace.core.nearest import choices
from headrace.core.promise import Promise, Takes
from headrace.core.secret import Secret
from headrace.core.where import says_where
from headrace.schema.formats import Format, Json, Plain, format_of

if TYPE_CHECKING:
    from headrace.connectors.kafka.input import KafkaInput
    from headrace.connectors.kafka.output import KafkaOutput

Start: TypeAlias = str | datetime | Mapping[int, int]

HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("name", pa.string()), pa.field("value", pa.binary())])))
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_ISOLATIONS = ("read_committed", "read_uncommitted")
_SECRET = ("password", "secret", "private", "credential", "token", ".pem", "oauthbearer.config")
# Settings that a source depends on; with other values records would be lost or read twice.
_OURS = {
    "bootstrap.servers": "servers=", "group.id": "group=", "isolation.level": "isolation=", "auto.offset.reset": "start=",
    "enable.auto.commit": "", "enable.partition.eof": "", "enable.auto.offset.store": "",
    "transactional.id": "", "enable.idempotence": "", "acks": "",
    # librdkafka's other names for two of them.
    "metadata.broker.list": "servers=", "request.required.acks": "",
}  # fmt: skip
_KINDS = {"key_as": (pa.string(), pa.binary()), "timestamp_as": (TIMESTAMP,), "headers_as": (HEADERS,)}


@dataclass(frozen=True)
class KafkaTopic:
    """The topic, its brokers, the format of its records, and the start; see `kafka`."""

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
        need_text("servers", self.servers, "broker:9092")
        if not isinstance(self.topic, str) or not _TOPIC.fullmatch(self.topic):
            raise SettingsError(f"{self.topic!r} is not a name of a Kafka topic", hint="use 1 to 249 of letters, digits, '.', '_' and '-'")
        if not isinstance(self.start, str | datetime | Mapping):
            raise SettingsError(f"start={self.start!r} is not a place in a topic", hint='"earliest", "latest", a datetime, or {0: 120}')
        if isinstance(self.start, str) and self.start not in ("earliest", "latest"):
            raise SettingsError(f"start={self.start!r} is not a place in a topic", hint='"earliest", "latest", a datetime, or offsets')
        if isinstance(self.start, datetime) and self.start.tzinfo is None:
            raise SettingsError(f"start={self.start!r} has no time zone", hint="give tzinfo=UTC")
        if self.isolation not in _ISOLATIONS:
            raise SettingsError(f"isolation={self.isolation!r} is not known", hint=" or ".join(_ISOLATIONS))
        if self.rows_per_epoch is not None and not counts(self.rows_per_epoch):
            raise SettingsError(
                f"rows_per_epoch={self.rows_per_epoch!r} admits no record", hint="give a whole number above zero, or leave it out"
            )
        for name in self.settings:
            if name in _OURS:
                instead = f"use {_OURS[name]}" if _OURS[name] else "leave it out"
                raise SettingsError(f"{name} of topic {self.topic!r} cannot be set", why="exactly once depends on it", hint=instead)

    def check(self, columns: pa.Schema, key: tuple[str, ...] | None = None) -> None:
        """Raise if the topic cannot provide these columns or, with a key, store them, or if Kafka's client is missing: before anything
        runs."""
        need_client("confluent_kafka", "Kafka's client", "kafka")
        if key is not None:
            self._check_writing(columns)
            return
        payload = self.payload(columns)
        if len(payload):
            self.format.codec(payload)

    def as_table(self, key: tuple[str, ...]) -> KafkaTopic:
        """The topic as a table: the latest record of each key is its live row, and a tombstone removes it."""
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
    def address(self) -> tuple[str, ...]:
        """Its identity among all places that are read or written."""
        return "kafka", self.servers, self.topic

    @property
    def promise(self) -> Promise:
        # The key of a fact only chooses its partition.
        takes = Takes.FACTS if self.append_only else Takes.CHANGES
        if self.at_least_once:
            return Promise(takes, "at least once", "idempotent producer", "record by record")
        return Promise(
            takes,
            "exactly once for `read_committed`",
            "records and the epoch (stored as the offset of a group of the task) in one transaction",
            "a task's epoch at once in each partition",
        )

    def __str__(self) -> str:
        return f"topic {self.topic} of Kafka"

    def _check_writing(self, columns: pa.Schema) -> None:
        if isinstance(self.format, Plain) and (len(columns) != 1 or columns.types[0] not in (pa.string(), pa.binary())):
            raise SchemaError(f"{self} writes one column of string or binary as it is", hint='select it, or use format="json"')
        if not isinstance(self.format, Plain | Json):
            raise SettingsError(f"{self}: records are written as JSON or as they are", hint='format="json" or "bytes"')

    @property
    def taken(self) -> dict[str, str]:
        """The columns that come from around a record's value: each one's kind, by its name."""
        named = {"key_as": self.key_as, "timestamp_as": self.timestamp_as, "headers_as": self.headers_as}
        return {column: option for option, column in named.items() if column is not None}

    def payload(self, columns: pa.Schema) -> pa.Schema:
        """The columns of a stream that come from a record's value."""
        for name, option in self.taken.items():
            if name not in columns.names:
                raise SchemaError(f"{option}={name!r}: there is no such column", hint=choices(name, columns.names, "columns"))
            kinds = _KINDS[option]
            if columns.field(name).type not in kinds:
                raise SchemaError(
                    f"{option}={name!r} is declared as {type_name(columns.field(name).type)}",
                    hint=f"declare it as {' or '.join(type_name(kind) for kind in kinds)}",
                )
        return pa.schema([column for column in columns if column.name not in self.taken])


@says_where
def kafka(  # noqa: PLR0913 - one option for each thing that may differ
    topic: str,
    *,
    servers: str,
    format: str | Format = "json",  # noqa: A002 - what it is called everywhere
    settings: Mapping[str, str | Secret] | None = None,
    patience: Duration = "2 minutes",
    start: Start = "earliest",
    isolation: str = "read_committed",
    group: str | None = None,
    rows_per_epoch: int | None = None,
    key_as: str | None = None,
    timestamp_as: str | None = None,
    headers_as: str | None = None,
    key: Names = (),
    append_only: bool = False,
    at_least_once: bool = False,
) -> KafkaTopic:
    """A topic of Kafka as the source of a stream, or as the target of a sink.

    `format` is "json", "bytes", `hr.avro(...)` or `hr.protobuf(...)`. `settings` are the client's own, by Kafka's names
    (`security.protocol`, `sasl.mechanism`, `ssl.ca.location`, ...); no message shows a password. A job waits for brokers that are away as
    long as `patience`, then stops.

    As a source (records that cannot be decoded go to the dead letters of the stream):

    - `start`: the start of a new job: "earliest", "latest", a datetime, or an offset for each partition. Partitions that are added later
      are read from their beginning.
    - `group`: the group that shows the job's progress in Kafka's tools, by default `headrace-<app>`. The job resumes from its checkpoint.
    - `rows_per_epoch`: the most records of an epoch.
    - `isolation`: "read_committed" or "read_uncommitted".
    - `key_as`, `timestamp_as`, `headers_as`: columns for the record's key (string or binary), for Kafka's timestamp, and for its headers
      (`array<struct<name:string,value:binary>>`).

    As a target (exactly once, in transactions that also contain the number of the epoch; readers need `read_committed`). Records are JSON
    objects, or one column as it is with `format="bytes"`. Results that change are upserts by their key, and tombstones.

    - `key`: the columns of a record's key, which also chooses its partition, as Kafka's own clients do. Results that change have their own.
    - `at_least_once=True`: no transactions. Records of an epoch that is repeated after a crash are stored twice.
    - `append_only=True`: refuse results that change.

    >>> kafka("payments", servers="broker:9092", settings={"sasl.password": "s3same"}).settings
    {'sasl.password': Secret(***)}
    """
    hidden = {name: Secret(value) if isinstance(value, str) and _secret(name) else value for name, value in (settings or {}).items()}
    return KafkaTopic(
        topic, servers, format_of(format), start, isolation, group, rows_per_epoch, key_as, timestamp_as, headers_as,
        settings=hidden, key=listed(key), append_only=append_only, at_least_once=at_least_once, patience=duration(patience),
    )  # fmt: skip


def _secret(name: str) -> bool:
    return any(part in name for part in _SECRET)
