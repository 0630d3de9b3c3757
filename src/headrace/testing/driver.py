"""`TestDriver`: an app in virtual time, with no JVM and no files, on the same operators as in Spark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.api.declaration import Declaration
from headrace.core.clock import to_datetime, to_microseconds
from headrace.core.durations import Duration, microseconds
from headrace.core.errors import PlanError, SchemaError
from headrace.core.keys import encode_keys, partitions_of
from headrace.core.schema import ddl
from headrace.core.values import column_of
from headrace.operators.accounting import Accounting
from headrace.operators.changes import OP, RETRACT, as_upserts
from headrace.operators.compiler import compiled
from headrace.operators.disorder import Lateness
from headrace.operators.hot import HotKey, hottest
from headrace.operators.runner import Runner
from headrace.operators.sides import OFFSET, PARTITION
from headrace.operators.time import BEGINNING, END, LATEST, EpochTime
from headrace.operators.watermark import Progress, united
from headrace.plan.nodes import Source
from headrace.plan.plan import Output
from headrace.plan.topics import dead_topic, hot_topic, late_topic
from headrace.plan.watermarks import LossBudget

Moment = datetime | str
Row = dict[str, Any]


class TestDriver:
    """Sends records to an app's streams and shows what its views hold; time moves only with records and when told.

    Each `send` is one epoch. `advance` says that event time has come to a moment in every stream. `starts_at` sets the wall
    clock, which then moves only by `wait` and `advance`; without it the clock goes along with the records, and none is too far ahead.
    """

    __test__ = False  # pytest takes classes of this name for tests

    def __init__(
        self, app: Declaration, *, shards: int = 2, partitions: int | Mapping[str, int] = 1, starts_at: Moment | None = None
    ) -> None:
        plan = app.plan()
        self._name = plan.name
        self._sources = {source.name: source for source in plan.sources}
        self._outputs = {output.name: output for output in plan.outputs}
        self._program = compiled(plan, shards)
        for cut in self._program.cuts.values():
            raise cut.refuse_without_spark()
        self._runner = Runner(self._program)
        counts = partitions if isinstance(partitions, Mapping) else dict.fromkeys(self._sources, partitions)
        self._offsets = {name: [0] * counts.get(name, 1) for name in self._sources}
        self._progress = {name: Progress() for name in self._sources}
        self._held: dict[str, dict[tuple[Any, ...], Row]] = {name: {} for name in self._outputs}
        self._side: dict[str, list[Row]] = {}
        self._accounting = Accounting()
        self._epoch = 0
        self._before = BEGINNING
        self._clock = self._wall = BEGINNING
        # A wall clock that nobody set shows the latest time that there was.
        self._follows = starts_at is None
        self._now = 0 if starts_at is None else _micros(starts_at)

    def send(self, stream: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> None:
        """Send records to a stream, and let the app take them in as one epoch."""
        source = self._source(stream)
        records = self._records(source, rows)
        latest = self._latest(source, records)
        if self._follows:
            self._now = max([*latest.values(), self._now])
        self._observe({stream: latest}, self._now, {stream: self._lateness(source, records)})
        self._run({stream: records}, *self._time())

    def remove(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Let a table of another system (`app.table`) lose rows, each told by its key: what a tombstone does."""
        source = self._source(table)
        if not getattr(source.connector, "table_by", ()):
            raise PlanError(f"{table!r} is no table that rows are removed from", hint='app.table("name", ..., source=hr.kafka(...))')
        self._run({table: self._records(source, rows).with_columns(pl.lit(RETRACT, pl.Int8).alias(OP))}, *self._time())

    def wait(self, time: Duration) -> None:
        """The wall clock moves on and nothing comes: what has been silent for `idle` holds event time back no longer."""
        self._now += microseconds(time)
        self._observe({}, self._now)
        self._run({}, *self._time())

    def advance(self, to: Moment) -> None:
        """Event time comes to `to` in every stream: windows that end by then fire."""
        moment = _micros(to)
        self._now = self._wall = max(self._now, moment)
        self._progress = {name: replace(progress, watermark=max(progress.watermark, moment)) for name, progress in self._progress.items()}
        self._run({}, moment)

    def end(self) -> None:
        """The input is complete: every window fires."""
        self._run({}, END)

    def replay(self, batches: Mapping[str, pl.DataFrame], time: EpochTime, limits: Mapping[str, int]) -> None:
        """Take in an epoch as a job had it: its records, with their places, its time, and the time until which records are believed."""
        reached, accounting = self._runner.epoch(batches, time, limits)
        self._accounting.unite(accounting)
        for target, frames in reached.items():
            if target in self._outputs:
                self._fold(self._outputs[target], frames)
            else:
                self._side.setdefault(target, []).extend(row for frame in frames for row in frame.to_dicts())

    def restart(self) -> None:
        """Crash and come back: go on from what the state store holds."""
        self._runner.restart()

    def rows(self, name: str) -> list[Row]:
        """What a view holds, or the target of a sink would: in the order of its keys, or facts as they came. No server is asked."""
        if name not in self._held:
            raise PlanError(f"there is no view {name!r}, and no sink", hint=f"views and sinks: {', '.join(self._held)}")
        return [row for _, row in sorted(self._held[name].items(), key=lambda item: [_place(part) for part in item[0]])]

    def late(self, stream: str) -> list[Row]:
        """The late records of a stream so far, with `step`, `reason`, `watermark` and the window they missed."""
        return self._side.get(late_topic(self._source(stream).name), [])

    def dead_letters(self, stream: str) -> list[Row]:
        """The bad records of a stream so far, with `step`, `reason`, and the place they came from."""
        return self._side.get(dead_topic(self._source(stream).name), [])

    def accounting(self) -> list[dict[str, Any]]:
        """One dictionary a step: step, in, out, late, duplicate, filtered, dead_letter."""
        return self._accounting.rows()

    def state(self) -> list[dict[str, Any]]:
        """What each step with state keeps now: step, rows, bytes."""
        return [{"step": step, "rows": size.rows, "bytes": size.bytes} for step, size in self._runner.sizes().items()]

    def hot_keys(self) -> list[HotKey]:
        """Keys with a large share of the records of a step, by samples of large batches: one epoch in eight is looked at."""
        seen = self._side.get(hot_topic(self._name))
        return hottest(pl.DataFrame(seen)) if seen else []

    @property
    def watermark(self) -> datetime | None:
        """How far event time has come; None before the first record."""
        return to_datetime(self._before) if BEGINNING < self._before < END else None

    def bounds(self, stream: str) -> dict[int, timedelta]:
        """How far the watermark stays behind the latest record of each partition: as declared, or as it was learned."""
        rule = self._source(stream).watermark
        found = {} if rule is None else self._progress[stream].bounds(rule)
        return {partition: timedelta(microseconds=bound) for partition, bound in found.items()}

    def __enter__(self) -> TestDriver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return

    def _observe(
        self, latest: Mapping[str, Mapping[int, int]], now: int, lateness: Mapping[str, Mapping[int, Lateness]] | None = None
    ) -> None:
        self._wall = now
        for name, source in self._sources.items():
            seen = self._progress[name].observe(latest.get(name, {}), now)
            if lateness is not None and isinstance(source.watermark, LossBudget):
                seen = seen.learn(source.watermark, lateness.get(name, {}))
            self._progress[name] = seen if source.watermark is None else seen.advance(source.watermark, now, self._program.closing)

    def _run(self, batches: Mapping[str, pl.DataFrame], after: int, idle: bool = False) -> None:
        self._epoch += 1
        clock = max(self._clock, self._wall)
        time = EpochTime(self._epoch, self._before, max(after, self._before), idle, self._clock, clock)
        self._clock = clock
        self._before = time.after
        self.replay(batches, time, dict.fromkeys(batches, self._limit(batches)))

    def _fold(self, output: Output, frames: list[pl.DataFrame]) -> None:
        held, names, by = self._held[output.name], output.node.columns.names, output.folds_by
        changelog = pl.concat(frames, how="diagonal")
        for row in (as_upserts(changelog, by) if by and OP in changelog.columns else changelog).to_dicts():
            # Facts are told apart by their number.
            key = tuple(_same(row[name]) for name in by) if by else (len(held),)
            if row.get(OP, 1) > 0 or not by:
                held[key] = {name: row[name] for name in names}
            else:
                held.pop(key, None)

    def _time(self) -> tuple[int, bool]:
        return united([progress for name, progress in self._progress.items() if self._sources[name].watermark is not None], self._before)

    def _limit(self, batches: Mapping[str, pl.DataFrame]) -> int:
        """Times later than this are not believed; a clock that follows the records has none that is too far ahead."""
        rules = [self._sources[name].watermark for name in batches]
        ahead = [microseconds(rule.max_ahead) for rule in rules if rule is not None]
        return LATEST if self._follows or not ahead else min(LATEST, self._now + min(ahead))

    def _records(self, source: Source, rows: Sequence[Mapping[str, Any]] | pa.Table) -> pl.DataFrame:
        try:
            table = rows.select(source.columns.names).cast(source.columns) if isinstance(rows, pa.Table) else _table(source, rows)
        except (pa.ArrowException, KeyError, TypeError, ValueError, OverflowError) as error:
            raise SchemaError(
                f"a record does not fit stream {source.name!r}: {error}", hint=f"its columns are {ddl(source.columns)}"
            ) from error
        places = [0] * table.num_rows
        count = len(self._offsets[source.name])
        if source.key and count > 1:
            keys = encode_keys([table.column(name).combine_chunks() for name in source.key])
            # Records without a key go to any partition; here to the first.
            places = [max(0, place) for place in partitions_of(keys, count).tolist()]
        offsets = []
        for place in places:
            offsets.append(self._offsets[source.name][place])
            self._offsets[source.name][place] += 1
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return frame.with_columns(pl.Series(PARTITION, places, pl.Int32), pl.Series(OFFSET, offsets, pl.Int64))

    def _latest(self, source: Source, records: pl.DataFrame) -> dict[int, int]:
        times = self._times(source, records)
        return dict(times.group_by(PARTITION).agg(pl.col("time").max()).rows())

    def _lateness(self, source: Source, records: pl.DataFrame) -> dict[int, Lateness]:
        reaches = self._progress[source.name].partitions
        return {
            partition: Lateness.of(times.get_column("time").to_numpy(), reaches[partition].latest if partition in reaches else None)
            for (partition,), times in self._times(source, records).group_by(PARTITION, maintain_order=True)
        }

    def _times(self, source: Source, records: pl.DataFrame) -> pl.DataFrame:
        """The partitions and event times of records, without those that are not believed."""
        if source.time is None:
            return pl.DataFrame(schema={PARTITION: pl.Int32, "time": pl.Int64})
        times = records.select(PARTITION, pl.col(source.time).cast(pl.Int64).alias("time"))
        return times.filter(pl.col("time") <= self._limit({source.name: records}))

    def _source(self, name: str) -> Source:
        if name not in self._sources:
            raise PlanError(f"there is no stream {name!r}", hint=f"streams: {', '.join(self._sources)}")
        return self._sources[name]


def _table(source: Source, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    for row in rows:
        if not isinstance(row, Mapping):
            raise TypeError(f"{row!r} is no dictionary of columns")
        for name in row:
            if name not in source.columns.names:
                raise KeyError(f"no column {name!r}")
    columns = [column_of([_value(row.get(field.name), field) for row in rows], field.type) for field in source.columns]
    for field, column in zip(source.columns, columns, strict=True):
        if column.null_count and not field.nullable:
            raise ValueError(f"column {field.name!r} is NOT NULL, and {column.null_count} records have no value for it")
    return pa.table(columns, source.columns)


def _value(value: Any, field: pa.Field) -> Any:
    """A value of a record; times may be written as text."""
    return _micros(value) if isinstance(value, str) and pa.types.is_timestamp(field.type) else value


def _same(part: Any) -> Any:
    """A part of a key as one that equals itself, as NaN does not."""
    return math.nan if part != part else part  # noqa: PLR0124


def _place(part: Any) -> tuple[bool, bool, Any]:
    """Where a part of a key stands among others: NaN behind every number, nothing last, as Spark has them."""
    return part is None, part != part, part  # noqa: PLR0124


def _micros(moment: Moment | int) -> int:
    try:
        return to_microseconds(datetime.fromisoformat(moment) if isinstance(moment, str) else moment)
    except ValueError as error:
        raise SchemaError(f"{moment!r} is not a time", hint='write it as "2026-01-01T12:00:00Z", or give a datetime') from error
