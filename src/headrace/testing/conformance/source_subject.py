"""An input under test, and the events of its stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Protocol

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.core.columns.schema import schema
from headrace.core.errors import SettingsError
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.planning.input import Input
from headrace.engine.program.compiler import compiled
from headrace.spark.job import Job, Packed
from headrace.testing.conformance.reading import InputReading

SOURCE_COLUMNS = schema("n bigint, kind string, at timestamp")
STREAM = "records"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Row = Mapping[str, Any]


class Transaction(Protocol):
    """Records that were sent and are not committed."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...


class SourceSubject(ABC):
    """A stream without records, of one partition, and everything that may happen to it. What cannot happen is in `inapplicable`."""

    inapplicable: ClassVar[Mapping[str, str]] = {}
    """Cases that mean nothing for this system, by their names, each with the reason."""

    @abstractmethod
    def input(self) -> Input:
        """The stream as an input for `SOURCE_COLUMNS`, whose event time is `at`; as a new process would open it."""

    @abstractmethod
    def send(self, rows: Sequence[Row], partition: int = 0) -> None:
        """Append records to a partition; readers see them when this returns."""

    def begin(self, rows: Sequence[Row]) -> Transaction:
        """Send records in a transaction that stays open."""
        raise self._lacks("begin")

    def add_partition(self) -> None:
        """Add a partition to the stream."""
        raise self._lacks("add_partition")

    def expire(self, before: int) -> None:
        """Let retention remove the records of partition 0 before an offset."""
        raise self._lacks("expire")

    def make_anew(self) -> None:
        """Delete the stream, and create another one of the same name, without records."""
        raise self._lacks("make_anew")

    def compact(self) -> None:
        """Keep only the latest record of each `kind`, among those that may be compacted."""
        raise self._lacks("compact")

    def hold(self, reached: EpochPlan) -> None:  # noqa: B027 - most systems have nothing like it
        """Hold records after an epoch, as a run of a job does; does nothing where the system has no holds."""

    def _lacks(self, method: str) -> SettingsError:
        return SettingsError(
            f"{type(self).__name__} has no {method}()", hint="define it, or name the cases that call it in `inapplicable`, with the reason"
        )

    def reading(self, reached: EpochPlan | None = None) -> InputReading:
        """A job over the stream, from its beginning or from an epoch on."""
        declared = Declaration("certified")
        records = declared.stream(STREAM, schema=SOURCE_COLUMNS, time="at", watermark=bounded("0s"))
        declared.view("numbers", records, key="n")
        program = compiled(declared.plan(), 2)
        rule = declared.plan().sources[0].watermark
        job = Job("certified-1", "certified", Packed(program), {STREAM: self.input()}, {STREAM: rule}, outputs={}, keys={}, tasks=2)
        return InputReading(job, reached)


def numbered(*numbers: int, minute: float = 0) -> list[dict[str, Any]]:
    """Records with these numbers, of one of three kinds, and an event time this many minutes after noon."""
    return [{"n": n, "kind": f"k{n % 3}", "at": NOON + timedelta(minutes=minute)} for n in numbers]
