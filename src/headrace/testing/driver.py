"""`TestDriver`: an app in virtual time, with no JVM and no files, on the same operators as in Spark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import repeat
from types import TracebackType
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.api.declaration import Declaration
from headrace.core.clock import to_datetime
from headrace.core.columns.moments import microseconds_of
from headrace.core.counts import counts
from headrace.core.durations import LONGEST, Duration, microseconds
from headrace.core.errors import PlanError
from headrace.core.nearest import choices
from headrace.core.where import says_where
from headrace.engine.accounting import Accounting
from headrace.engine.evolution.snapshots import with_snapshots
from headrace.engine.hot_keys import HotKey, hottest
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.planning.planner import PlannedStream, Planner
from headrace.engine.program.compiler import compiled
from headrace.engine.program.program import Program
from headrace.engine.runner import Runner
from headrace.operators.changes import OP, RETRACT, net_changes
from headrace.operators.event_time.epoch_time import BEGINNING, END, LATEST, EpochTime
from headrace.plan.evolution.comparison import REFUSED, Decisions, compared
from headrace.plan.evolution.described import described
from headrace.plan.nodes import Source
from headrace.plan.plan import Output, Plan
from headrace.plan.topics import dead_topic, hot_topic, late_topic
from headrace.plan.waits import waits
from headrace.plan.watermarks import Watermark
from headrace.testing.records import removals_of, sent_table
from headrace.testing.sent_stream import SentStream

Moment = datetime | str
Row = dict[str, Any]


class TestDriver:
    """An app in virtual time: send records to its streams, move time, and look at its views and sinks.

    Each `send` and each `send_all` is one epoch. `advance` moves event time in every stream. `starts_at` sets the wall clock, which then
    moves only by `wait` and `advance`. Without it the clock follows the latest record: no record is too far in the future, and a stream is
    idle when records of another are `idle` further. `shards` and `partitions` are how many parts the keys, and each stream, have.

    >>> import tempfile
    >>> import headrace as hr
    >>> app = hr.App("pageviews", home=tempfile.mkdtemp())
    >>> views = app.stream("views", "url string, at timestamp", time="at", watermark=hr.bounded("30 seconds"))
    >>> app.view("per_minute", views.window(hr.tumbling("1 minute"), by="url").agg(views="count(*)"))
    >>> with hr.TestDriver(app) as driver:
    ...     driver.send("views", [{"url": "/", "at": "2026-01-01T12:00:01Z"}, {"url": "/", "at": "2026-01-01T12:00:59Z"}])
    ...     driver.advance("2026-01-01T12:01:00Z")
    ...     [row["views"] for row in driver.rows("per_minute")]
    [2]
    """

    __test__ = False  # pytest takes classes of this name for tests

    @says_where
    def __init__(
        self, app: Declaration, *, shards: int = 2, partitions: int | Mapping[str, int] = 1, starts_at: Moment | None = None
    ) -> None:
        if not isinstance(app, Declaration):
            raise PlanError(f"TestDriver({app!r}) is not given an app", hint='app = hr.App("name"), then TestDriver(app)')
        plan = app.plan()
        _refuse_counts(shards, partitions, [source.name for source in plan.sources])
        self._name = plan.name
        self._sources = {source.name: source for source in plan.sources}
        self._outputs = {output.name: output for output in plan.outputs}
        self._program, self._described = _without_spark(compiled(plan, shards)), described(plan)
        self._runner = Runner(self._program)
        spread = partitions if isinstance(partitions, Mapping) else dict.fromkeys(self._sources, partitions)
        self._inputs = {name: SentStream(source, spread.get(name, 1)) for name, source in self._sources.items()}
        # A wall clock that was not set shows the latest time so far; before the first it shows none.
        self._follows = starts_at is None
        self._shows = starts_at is not None
        self._planner = self._planned(plan)
        self._plan = self._planner.first()
        self._held: dict[str, dict[tuple[Any, ...], Row]] = {name: {} for name in self._outputs}
        self._side: dict[str, list[Row]] = {}
        self._accounting = Accounting()
        self._now = 0 if starts_at is None else _micros(starts_at)

    def send(self, stream: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> None:
        """Send records to a stream, and process them as one epoch."""
        self._take({stream: rows})

    def send_all(self, rows: Mapping[str, Sequence[Mapping[str, Any]] | pa.Table]) -> None:
        """Send records to several streams, and process them as one epoch; a stream that waits for a table begins in the epoch after it."""
        waiting = self._planner.waits if not self._plan.epoch else ()
        for group in ([name for name in rows if name not in waiting], [name for name in rows if name in waiting]):
            if group:
                self._take({name: rows[name] for name in group})

    def remove(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Remove rows from a table of another system (`app.table`), by their keys, as a tombstone does."""
        source = self._source(table)
        key = getattr(source.connector, "table_by", ())
        if not key:
            raise PlanError(f"{table!r} is not a table that rows can be removed from", hint='app.table("name", ..., source=hr.kafka(...))')
        records = self._inputs[table].send(sent_table(removals_of(source, key), rows))
        # A removal has no event time of its own.
        plan = replace(self._plan.following(self._now), positions=self._planner.ends())
        self._run(plan, {table: records.with_columns(pl.lit(RETRACT, pl.Int8).alias(OP))})

    def wait(self, time: Duration) -> None:
        """Move the wall clock, without records: a stream that is silent for `idle` no longer holds event time back."""
        length = microseconds(time)
        if length < 0:
            raise PlanError(f"wait({time!r}) would set the wall clock back", hint="give a duration of zero or more")
        self._now += length
        self._run(self._planner.taken(self._plan, self._now))

    def advance(self, to: Moment) -> None:
        """Move event time to `to` in every stream: windows that end by then fire."""
        moment = _micros(to)
        self._show(moment)
        progress = {name: replace(known, watermark=max(known.watermark, moment)) for name, known in self._plan.progress.items()}
        watermark = max(self._plan.watermark, moment)
        self._run(replace(self._plan.following(self._now), progress=progress, watermark=watermark))

    def flush(self) -> None:
        """Close every open window and session, as if time had passed. A later record of such a window is late."""
        self._run(self._planner.flushed(self._plan.following(self._now), self._plan))

    def end(self) -> None:
        """End the input: every window fires."""
        self._run(self._planner.ended(self._plan.following(self._now)))

    def replay(self, batches: Mapping[str, pl.DataFrame], time: EpochTime, limits: Mapping[str, int]) -> None:
        """Process an epoch as a job had it: its records, with their places, its time, and the limit of believed times."""
        reached, accounting = self._runner.epoch(batches, time, limits)
        self._accounting.merge(accounting)
        for target, frames in reached.items():
            if target in self._outputs:
                self._fold(self._outputs[target], frames)
            else:
                self._side.setdefault(target, []).extend(row for frame in frames for row in frame.to_dicts())

    def restart(self) -> None:
        """Crash and restart: resume from the stored state."""
        self._runner.restart()

    def rescale(self, shards: int) -> None:
        """Continue with another number of shards: the state of each key group moves to its new shard."""
        _refuse_counts(shards, 1, [])
        self._program = replace(self._program, shards=shards)
        self._runner = self._runner.moved(self._program, {name: name for name in self._program.operators}, {})

    def evolve(self, app: Declaration, *, shards: int | None = None) -> Decisions:
        """Continue as another version of the app, as `headrace run --accept` does; raises where that would need a rebuild."""
        plan = app.plan()
        after = described(plan)
        changes = compared(self._described, after)
        if changes.status == REFUSED:
            raise PlanError(f"app {self._name!r} cannot continue with its state:\n{changes}", why="some of it would have to be rebuilt")
        program = _without_spark(compiled(plan, shards or self._program.shards))
        self._program = with_snapshots(program, changes.snapshots, self._plan.epoch + 1)
        self._runner = self._runner.moved(self._program, changes.states, changes.dropped)
        self._described = after
        self._sources = {source.name: source for source in plan.sources}
        self._outputs = {output.name: output for output in plan.outputs}
        self._inputs = {name: self._inputs[name] for name in self._sources}
        self._planner = self._planned(plan)
        self._plan = self._plan.limited(self._sources)
        self._held = {name: {} if name in changes.emptied else self._held.get(name, {}) for name in self._outputs}
        return changes

    def rows(self, name: str) -> list[Row]:
        """The rows of a view, or of what a sink would write: in the order of their keys, or facts in the order of arrival. No server is
        asked."""
        if name not in self._held:
            raise PlanError(f"there is no view {name!r}, and no sink", hint=choices(name, self._held, "views and sinks"))
        return [row for _, row in sorted(self._held[name].items(), key=lambda item: [_place(part) for part in item[0]])]

    def late(self, stream: str) -> list[Row]:
        """The late records of a stream so far, with `step`, `reason`, `watermark` and the window they missed."""
        return self._side.get(late_topic(self._source(stream).name), [])

    def dead_letters(self, stream: str) -> list[Row]:
        """The dead letters of a stream so far, with `step`, `reason`, `partition`, `offset`, and the `record` as JSON."""
        return self._side.get(dead_topic(self._source(stream).name), [])

    def accounting(self) -> list[dict[str, Any]]:
        """One dictionary for each step: step, in, out, late, duplicate, filtered, dead_letter, and partly_late, which is not part of the
        sum."""
        return self._accounting.rows()

    def reasons(self) -> dict[str, dict[str, str]]:
        """For each step with late records or dead letters, the reason of the first `late` and of the first `dead_letter`."""
        found = {
            step: {name.removesuffix("_reason"): reason for name, reason in reasons.items() if reason is not None}
            for step, reasons in self._accounting.reasons().items()
        }
        return {step: reasons for step, reasons in found.items() if reasons}

    def state(self) -> list[dict[str, Any]]:
        """The state size of each step with state: step, rows, bytes."""
        return [{"step": step, "rows": size.rows, "bytes": size.bytes} for step, size in self._runner.sizes().items()]

    def hot_keys(self) -> list[HotKey]:
        """Keys with a large share of the records of a step, by samples of large batches in one epoch of eight."""
        seen = self._side.get(hot_topic(self._name))
        return hottest(pl.DataFrame(seen)) if seen else []

    @property
    def watermark(self) -> datetime | None:
        """How far event time has come; None before the first record."""
        mark = self._plan.watermark
        return to_datetime(mark) if BEGINNING < mark < END else None

    def bounds(self, stream: str) -> dict[int, timedelta]:
        """The distance of the watermark from the latest record of each partition: as declared, or as learned."""
        rule = self._source(stream).watermark
        found = {} if rule is None else self._plan.progress[stream].bounds(rule)
        return {partition: timedelta(microseconds=bound) for partition, bound in found.items()}

    def __enter__(self) -> TestDriver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return

    def _planned(self, plan: Plan) -> Planner:
        rules = {name: _rule(source, follows=self._follows) for name, source in self._sources.items()}
        streams = {name: PlannedStream(self._inputs[name], rules[name], source.time) for name, source in self._sources.items()}
        return Planner(plan.name, streams, self._program, waits(plan.nodes))

    def _take(self, rows: Mapping[str, Sequence[Mapping[str, Any]] | pa.Table]) -> None:
        tables = {stream: sent_table(self._source(stream), sent) for stream, sent in rows.items()}
        records = {stream: self._inputs[stream].send(table) for stream, table in tables.items()}
        times = [time for stream in records for time in self._inputs[stream].latest(LATEST).values()]
        if self._follows and times:
            self._show(max(times))
        self._run(self._planner.taken(self._plan, self._now), records)

    def _show(self, moment: int) -> None:
        """Let the wall clock show a moment, unless that is past."""
        if self._shows:
            self._now = max(self._now, moment)
            return
        # The time that `wait` let pass before the first moment was known ends with that moment: no stream was silent since 1970.
        progress = {
            name: known if known.began_at is None else replace(known, began_at=known.began_at + moment - self._now)
            for name, known in self._plan.progress.items()
        }
        self._plan, self._now, self._shows = replace(self._plan, progress=progress), moment, True

    def _run(self, plan: EpochPlan, batches: Mapping[str, pl.DataFrame] | None = None) -> None:
        before, self._plan = self._plan, plan
        for name, source in self._inputs.items():
            source.done(plan.positions[name])
        self.replay(batches or {}, plan.time(before), plan.limits)

    def _fold(self, output: Output, frames: list[pl.DataFrame]) -> None:
        held, names, by = self._held[output.name], output.node.columns.names, output.folds_by
        rows, removed = net_changes(pl.concat(frames, how="diagonal"), by)
        for row, gone in zip(rows.to_dicts(), repeat(False) if removed is None else removed, strict=False):
            # Facts are identified by their number.
            key = tuple(_same(row[name]) for name in by) if by else (len(held),)
            if gone:
                held.pop(key, None)
            else:
                held[key] = {name: row[name] for name in names}

    def _source(self, name: str) -> Source:
        if name not in self._sources:
            raise PlanError(f"there is no stream {name!r}", hint=choices(name, self._sources, "streams"))
        return self._sources[name]


def _without_spark(program: Program) -> Program:
    """The program, if it needs no Spark."""
    for cut in program.cuts.values():
        raise cut.refuse_without_spark()
    return program


def _refuse_counts(shards: object, partitions: object, streams: Sequence[str]) -> None:
    """Without a shard or a partition, records would have no place to go."""
    numbers = {"shards": shards, "partitions": partitions}
    if isinstance(partitions, Mapping):
        numbers = {"shards": shards, **{f"partitions of {name!r}": count for name, count in partitions.items()}}
        unknown = next((name for name in partitions if name not in streams), None)
        if unknown is not None:
            raise PlanError(f"partitions= names {unknown!r}, which is not a stream", hint=choices(unknown, streams, "streams"))
    for name, number in numbers.items():
        if not counts(number):
            raise PlanError(f"{name} is {number!r}", why="records would have no place to go", hint="give a whole number above zero")


def _rule(source: Source, *, follows: bool) -> Watermark | None:
    """The watermark of a stream; a clock that follows the records has none that is too far ahead."""
    rule = source.watermark
    return replace(rule, max_ahead=LONGEST) if rule is not None and follows else rule


def _same(part: Any) -> Any:
    """A part of a key in a form that equals itself, as NaN does not."""
    return math.nan if part != part else part  # noqa: PLR0124


def _place(part: Any) -> tuple[bool, bool, Any]:
    """The place of a part of a key among others: NaN after every number, null last, as in Spark."""
    return part is None, part != part, part  # noqa: PLR0124


def _micros(moment: Moment) -> int:
    try:
        return microseconds_of(moment, None)
    except ValueError as error:
        raise PlanError(f"{moment!r} is not a time", hint='write it as "2026-01-01T12:00:00Z", or give a datetime') from error
