"""The log and files that are fed to it, as inputs to certify."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from headrace.connectors.files.feed import Feed, feed_ndjson
from headrace.connectors.log.input import LogInput
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory
from headrace.jobs.start.compaction_hold import Holding
from headrace.log import Log, Producer
from headrace.testing.conformance.inputs import SOURCE_COLUMNS, STREAM, SourceSubject
from headrace.testing.conformance.source_subject import Row


@dataclass(frozen=True)
class LogTransaction:
    producer: Producer

    def commit(self) -> None:
        self.producer.commit_transaction()
        self.producer.close()

    def abort(self) -> None:
        self.producer.abort_transaction()
        self.producer.close()


class LogSource(SourceSubject):
    """A topic of the embedded log, of small segments."""

    def __init__(self, home: Path) -> None:
        self.home, self.log, self._sent = home, Log(home / "log"), 0
        self._create()

    def input(self) -> LogInput:
        return LogInput(self.log.path, STREAM, tuple(SOURCE_COLUMNS.names), "at")

    def send(self, rows: Sequence[Row], partition: int = 0) -> None:
        for row in rows:
            self._sent += 1
            table = pa.Table.from_pylist([dict(row)], SOURCE_COLUMNS)
            self.log.append_epoch(STREAM, table, writer="sender", epoch=self._sent, partition=partition)

    def begin(self, rows: Sequence[Row]) -> LogTransaction:
        producer = self.log.producer(transactional_id="certified")
        producer.begin_transaction()
        producer.send_table(STREAM, pa.Table.from_pylist([dict(row) for row in rows], SOURCE_COLUMNS))
        producer.flush()
        return LogTransaction(producer)

    def add_partition(self) -> None:
        self.log.alter_topic(STREAM, partitions=self.log.topic(STREAM).partitions + 1)

    def expire(self, before: int) -> None:
        self.log.delete_records(STREAM, 0, before)

    def make_anew(self) -> None:
        self.log.delete_topic(STREAM)
        self._create()

    def compact(self) -> None:
        self.log.alter_topic(STREAM, config={"cleanup.policy": "compact"})
        [report] = self.log.maintain(STREAM, force=True)
        assert report.error is None
        # Something went, or the case would show nothing.
        assert self.log.read(STREAM).num_rows < self.log.describe(STREAM)["partitions"][0]["end"]

    def hold(self, reached: EpochPlan) -> None:
        place = JobDirectory(self.home, "certified")
        place.path.mkdir(parents=True, exist_ok=True)
        place.fix(place.begin("plan", 1))
        Holding(place, self.log, [STREAM]).move(reached)

    def _create(self) -> None:
        self.log.create_topic(STREAM, schema=SOURCE_COLUMNS, key="kind", time="at", config={"segment.bytes": 1024})


class FileSource(LogSource):
    """Files of JSON lines that `headrace produce` feeds to a topic."""

    inapplicable: ClassVar[dict[str, str]] = {
        "an_open_transaction_is_read_when_it_is_committed_and_so_are_later_records": "a file is fed without transactions",
        "an_aborted_transaction_is_not_read_and_does_not_move_time": "a file is fed without transactions",
        "partitions_that_are_added_are_read_from_their_first_record": "the topic has partitions, and files have none",
    }

    def send(self, rows: Sequence[Row], partition: int = 0) -> None:
        file = self.home / "records.ndjson"
        file.write_text("".join(json.dumps({**row, "at": row["at"].isoformat()}) + "\n" for row in rows), encoding="utf-8")
        with file.open("rb") as lines:
            assert feed_ndjson(self.log, STREAM, lines, Feed()).stored == len(rows)
