"""A topic of the log as the target of a sink."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from headrace.core.promise import IN_LOG, Promise, Takes
from headrace.log.topic import check_name


@dataclass(frozen=True)
class LogTopic:
    """A topic that stores the records of a stream, or the latest row of each key of a table, each epoch once.

    `app.sink(stream, hr.log("alerts"))`. With `append_only=True` its readers may take every record as a fact: results that are replaced or
    retracted later are refused when the app is planned.
    """

    topic: str
    append_only: bool = False

    @property
    def address(self) -> tuple[str, ...]:
        """Its identity among all places that are read or written."""
        return "log", self.topic

    @property
    def key(self) -> tuple[str, ...]:
        return ()

    @property
    def promise(self) -> Promise:
        return replace(IN_LOG, takes=Takes.FACTS) if self.append_only else IN_LOG

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """A topic accepts every column that a stream can have."""
        check_name(self.topic)

    def __str__(self) -> str:
        return f"topic {self.topic}"
