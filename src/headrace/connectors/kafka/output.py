"""A topic of Kafka as an output of the engine: records, and the number of their epoch, commit in one transaction."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from headrace.connectors.kafka.client import TIMEOUT, admin, failure, topic_of
from headrace.connectors.kafka.declaration import KafkaTopic
from headrace.connectors.kafka.epoch_producer import KeyedValues, ProducerLost, write
from headrace.connectors.kafka.writer_epoch import epoch_of
from headrace.connectors.output import Changes, DeadLetters, Writer, table_of
from headrace.connectors.patience import patiently
from headrace.core.columns.keys import encode_keys
from headrace.schema.formats import Json
from headrace.schema.legible import as_json

# The largest request of Kafka's clients, unless `settings` say otherwise, less some room for a record's headers.
_LARGEST, _AROUND = 1_000_000, 512


@dataclass(frozen=True)
class KafkaOutput:
    """A topic, the columns of its records, and the key by which they replace each other."""

    target: KafkaTopic
    columns: pa.Schema
    key: tuple[str, ...]

    def reach(self) -> None:
        topic_of(self.target)

    def prepare(self, tasks: int) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined] # it is public, its module does not say so

        target = self.target
        if topic_of(target).error is None:
            return
        kept = {"cleanup.policy": "compact"} if self.key else {}
        try:
            admin(target).create_topics([NewTopic(target.topic, tasks, config=kept)], request_timeout=TIMEOUT)[target.topic].result(TIMEOUT)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise failure(target, "creating", error.args[0].str()) from error

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        frame, removed = changes.frame, changes.removed
        keys, values = self._keys(frame), self._values(frame)
        most = int(str(self.target.settings.get("message.max.bytes", _LARGEST)))
        large = [place for place, value in enumerate(values) if len(value) + len(keys[place] or b"") > most - _AROUND]
        if large:
            dead(frame[large], [f"it is larger than the {most:,} bytes that Kafka accepts"] * len(large))
        gone = set(removed.arg_true()) if removed is not None else set()
        left = set(large) - gone
        places = [place for place in range(frame.height) if place not in left]
        records = KeyedValues([keys[place] for place in places], [None if place in gone else values[place] for place in places])

        try:
            return patiently(self.target.patience, lambda: write(self.target, writer, epoch, records), (ProducerLost,))
        except ProducerLost as error:
            raise failure(self.target, "writing to", str(error)) from error

    def publish(self, job: str, sink: str, epoch: int) -> None:
        """There is nothing to publish: committed records are visible at once."""

    def last_epoch(self, writer: Writer) -> int | None:
        epoch = -1 if self.target.at_least_once else epoch_of(self.target, writer).epoch
        return None if epoch < 0 else epoch

    def _keys(self, frame: pl.DataFrame) -> list[bytes | None]:
        key = self.key or self.target.key
        if not key:
            return [None] * frame.height
        table = table_of(frame, pa.schema([self.columns.field(name) for name in key]))
        return list(encode_keys([column.combine_chunks() for column in table.columns]).to_pylist())

    def _values(self, frame: pl.DataFrame) -> list[bytes]:
        if isinstance(self.target.format, Json):
            texts = as_json(frame.select(self.columns.names)).cast(pl.Binary)
        else:
            texts = frame.get_column(self.columns.names[0]).cast(pl.Binary).fill_null(b"")
        return texts.to_list()
