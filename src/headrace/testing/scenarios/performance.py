"""A scenario performed on an engine, and the differences from what was expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

from headrace.plan.topics import dead_topic, late_topic
from headrace.testing.scenarios.scenario import End, Expect, Flush, Row, Scenario, Send, Wait


class Engine(Protocol):
    """Any host of an app: it takes records and time in, and shows the results."""

    def send(self, stream: str, rows: Sequence[Mapping[str, Any]]) -> None: ...

    def wait(self, time: timedelta) -> None: ...

    def flush(self) -> None: ...

    def end(self) -> None: ...

    def rows(self, view: str) -> list[Row]: ...

    def late(self, stream: str) -> list[Row]: ...

    def dead_letters(self, stream: str) -> list[Row]: ...

    def accounting(self) -> list[dict[str, Any]]: ...

    @property
    def watermark(self) -> datetime | None: ...


def perform(scenario: Scenario, engine: Engine) -> int:
    """Perform and compare the whole transcript, in order; returns the number of comparisons, or raises AssertionError."""
    compared = 0
    for action in scenario.transcript:
        match action:
            case Send(stream, rows):
                engine.send(stream, rows)
            case Wait(time):
                engine.wait(time)
            case Flush():
                engine.flush()
            case End():
                engine.end()
            case Expect():
                compared += _compare(action, engine, scenario)
    return compared


def _compare(wanted: Expect, engine: Engine, scenario: Scenario) -> int:
    for name, rows in wanted.rows.items():
        _compare_rows(f"{wanted.place}.{name}", rows, _table(engine, name, scenario))
    counted = {str(count["step"]): count for count in engine.accounting()} if wanted.accounting else {}
    for step, ends in wanted.accounting.items():
        if step not in counted:
            raise AssertionError(f"{wanted.place}.accounting: no step {step!r} counted anything; steps: {', '.join(counted)}")
        found = {end: counted[step][end] for end in ends}
        if found != ends:
            raise AssertionError(f"{wanted.place}.accounting.{step}: expected {dict(ends)}, there is {found}")
    if wanted.watermark is not None and wanted.watermark != engine.watermark:
        raise AssertionError(f"{wanted.place}.watermark: expected {wanted.watermark}, there is {engine.watermark}")
    return len(wanted.rows) + len(wanted.accounting) + (wanted.watermark is not None)


def _table(engine: Engine, name: str, scenario: Scenario) -> list[Row]:
    for stream in scenario.partitions:
        if name == late_topic(stream):
            return engine.late(stream)
        if name == dead_topic(stream):
            return engine.dead_letters(stream)
    return engine.rows(name)


def _compare_rows(place: str, wanted: Sequence[Row], found: Sequence[Row]) -> None:
    """Compare the columns that are named; rows have no order."""
    columns = list(wanted[0]) if wanted else None
    shown = [row if columns is None else {name: row[name] for name in columns} for row in found]
    if Counter(map(_identity, wanted)) != Counter(map(_identity, shown)):
        raise AssertionError(f"{place}:\n  expected:{_listed(wanted)}\n  there is:{_listed(shown)}")


def _identity(row: Row) -> str:
    return repr(sorted((name, _plain(value)) for name, value in row.items()))


def _plain(value: object) -> object:
    """A normalized value: 2 equals 2.0, and all forms of UTC are equal."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Decimal):
        return value.normalize()
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _listed(rows: Sequence[Row]) -> str:
    lines = [", ".join(f"{name}={_shown(value)}" for name, value in row.items()) for row in rows]
    return "".join(f"\n    {line}" for line in sorted(lines)) or " nothing"


def _shown(value: object) -> str:
    return value.astimezone(UTC).isoformat(" ") if isinstance(value, datetime) else repr(value)
