"""A topic of the log as the target of a sink."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogTopic:
    """A topic that takes the records of a stream, or the latest row of each key of a table, each epoch once.

    `app.sink(stream, hr.log("alerts"))`
    """

    topic: str

    def __str__(self) -> str:
        return f"topic {self.topic}"
