"""A scenario as a value: its lesson, its app, and the records, waits and expectations, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from headrace.api.declaration import Declaration
from headrace.core.durations import duration
from headrace.core.errors import SchemaError, SettingsError
from headrace.engine.accounting import ENDS
from headrace.plan.plan import Plan
from headrace.plan.side_streams import DEAD_LETTER, late_columns
from headrace.plan.topics import dead_topic, late_topic
from headrace.testing.scenarios.content import Content
from headrace.testing.scenarios.declaration import declare, partitions

Row = dict[str, object]
# A day after the usual one: without a clock of its own, no record of a scenario is ahead of time.
_DAY, _NOW = "2026-01-01", "2026-01-02 00:00:00"
_FIELDS = ("title", "teaches", "day", "now", "streams", "steps", "views", "transcript")
_ACTIONS = ("note", "send", "wait", "expect")


@dataclass(frozen=True)
class Note:
    """A remark for the reader."""

    text: str


@dataclass(frozen=True)
class Send:
    """Records come to a stream, in one epoch."""

    stream: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Wait:
    """The wall clock moves on, and no record arrives."""

    time: timedelta


@dataclass(frozen=True)
class End:
    """The input is complete."""


@dataclass(frozen=True)
class Flush:
    """Every open window fires, and the input continues."""


@dataclass(frozen=True)
class Expect:
    """What must be true now: rows of views and side topics, counts of steps, the watermark. Only the named columns are compared."""

    place: str
    rows: Mapping[str, tuple[Row, ...]]
    accounting: Mapping[str, Mapping[str, int]]
    watermark: datetime | None = None


Action = Note | Send | Wait | Flush | End | Expect


@dataclass(frozen=True)
class Scenario:
    """One story. `name` is that of its file."""

    name: str
    title: str
    teaches: str
    starts_at: datetime
    partitions: Mapping[str, int]
    transcript: tuple[Action, ...]
    content: Content

    @classmethod
    def load(cls, file: Path) -> Scenario:
        """Read a scenario and check its declarations and every name, column and time in it."""
        content = Content.of(file)
        found = content.fields(_FIELDS, needed=["title", "teaches", "streams", "views", "transcript"])
        day = datetime.fromisoformat(found["day"].text() if "day" in found else _DAY).replace(tzinfo=UTC)
        now = found.get("now", Content(_NOW, content.place)).moment(day)
        draft = cls(file.stem, found["title"].text(), found["teaches"].text(), now, partitions(found["streams"]), (), content)
        reader = _TranscriptReader(draft.plan, day)
        transcript = tuple(reader.action(part) for part in found["transcript"].parts())
        return cls(draft.name, draft.title, draft.teaches, now, draft.partitions, transcript, content)

    def declare(self, app: Declaration) -> None:
        """Declare the streams and views of the scenario in an app."""
        found = self.content.fields(_FIELDS)
        declare(app, found["streams"], found.get("steps"), found["views"])

    @cached_property
    def plan(self) -> Plan:
        app = Declaration(self.name)
        self.declare(app)
        return app.plan()


class _TranscriptReader:
    """Reads the transcript, with the known columns."""

    def __init__(self, plan: Plan, day: datetime) -> None:
        self._day = day
        self._streams = {source.name: source.columns for source in plan.sources}
        self._tables = {view.name: view.node.columns for view in plan.views}
        for name, columns in self._streams.items():
            self._tables |= {late_topic(name): pa.schema([*columns, *late_columns(columns)]), dead_topic(name): DEAD_LETTER}

    def action(self, part: Content) -> Action:
        if part.value == "end":
            return End()
        if part.value == "flush":
            return Flush()
        kind, content = part.only(_ACTIONS)
        if kind == "note":
            return Note(content.text())
        if kind == "wait":
            try:
                return Wait(duration(content.text()))
            except SettingsError as error:
                raise SchemaError(f"{content.place}: {error.fact}", hint=error.hint) from error
        if kind == "send":
            stream, records = content.only(self._streams)
            return Send(stream, self._rows(records, self._streams[stream]))
        return self._expect(content)

    def _expect(self, content: Content) -> Expect:
        found = content.fields([*self._tables, "accounting", "watermark"])
        rows = {name: self._expected(value, self._tables[name]) for name, value in found.items() if name in self._tables}
        counts = {}
        for step, ends in found["accounting"].items() if "accounting" in found else ():
            counts[step] = {end: count.number() for end, count in ends.fields(["in", *ENDS]).items()}
        watermark = found["watermark"].moment(self._day) if "watermark" in found else None
        return Expect(content.place, rows, counts, watermark)

    def _rows(self, content: Content, columns: pa.Schema) -> tuple[Row, ...]:
        return tuple(part.row(columns, self._day) for part in content.parts())

    def _expected(self, content: Content, columns: pa.Schema) -> tuple[Row, ...]:
        rows = self._rows(content, columns)
        for part, row in zip(content.parts(), rows, strict=True):
            if set(row) != set(rows[0]):
                raise SchemaError(f"{part.place} names other columns than the row before it", hint=f"name {', '.join(rows[0])} in each row")
        return rows
