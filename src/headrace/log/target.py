"""A topic of the log as the target of a sink."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace.log.topic import check_name


@dataclass(frozen=True)
class LogTopic:
    """A topic that takes the records of a stream, or the latest row of each key of a table, each epoch once.

    `app.sink(stream, hr.log("alerts"))`. With `append_only=True` its readers may take every record for a fact: results that are
    replaced or taken back later are refused when the app is planned.
    """

    topic: str
    append_only: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        return ()

    @property
    def replaces(self) -> bool:
        return False

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """A topic takes what a stream can have."""
        check_name(self.topic)

    def __str__(self) -> str:
        return f"topic {self.topic}"
