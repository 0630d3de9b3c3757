"""A topic of the embedded log as an output of the engine: the epoch is in the header of the records that it appends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from headrace.connectors.log.input import opened
from headrace.connectors.output import Changes, DeadLetters, Writer
from headrace.log.errors import Fenced
from headrace.schema.legible import key_text


@dataclass(frozen=True)
class LogOutput:
    """A topic by its name and the directory of its log; with a key, its records replace each other."""

    directory: Path
    topic: str
    key: tuple[str, ...] = ()

    def prepare(self, tasks: int) -> None:
        """Does nothing: topics of a job are created with the job."""

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        log = opened(self.directory)
        topic = log.topic(self.topic)
        frame = changes.frame
        if self.key:
            frame = frame.with_columns(key_text(frame, self.key).cast(pl.Binary).alias("_key"))
        if changes.removed is not None:
            frame = frame.with_columns(changes.removed.alias("_tombstone"))
        wanted = [name for name in (*topic.columns.names, "_key", "_tombstone") if name in frame.columns]
        try:
            stored = log.append_epoch(
                topic.name,
                frame[wanted].to_arrow(),
                writer=writer.name,
                epoch=epoch,
                # The records of a key are always in the same task, and so in the same partition.
                partition=writer.part_of(topic.partitions),
                generation=writer.generation,
            )
        except Fenced as error:
            raise writer.fenced() from error
        return not any(part.repeated for part in stored)

    def publish(self, job: str, sink: str, epoch: int) -> None:
        """There is nothing to publish: appended records are visible at once."""

    def last_epoch(self, writer: Writer) -> int | None:
        found = opened(self.directory).last_epochs(self.topic, writer.name).values()
        return max((epoch for epoch in found if epoch is not None), default=None)
