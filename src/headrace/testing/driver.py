"""`TestDriver`: an app in virtual time, with no JVM and no files, on the same operators as in Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.api.declaration import Declaration
from headrace.core.clock import to_microseconds
from headrace.core.errors import PlanError, SchemaError
from headrace.core.keys import encode_keys, partitions_of
from headrace.core.schema import ddl
from headrace.operators.accounting import Accounting
from headrace.operators.changes import OP, as_upserts
from headrace.operators.compiler import compiled
from headrace.operators.program import OFFSET, PARTITION
from headrace.operators.runner import Runner
from headrace.operators.time import BEGINNING, END, EpochTime
from headrace.operators.watermark import Progress
from headrace.plan.nodes import Source
from headrace.plan.plan import View

Moment = datetime | str
Row = dict[str, Any]


class TestDriver:
    """Sends records to an app's streams and shows what its views hold; time moves only with records and when told.

    Each `send` is one epoch. `advance` says that event time has come to a moment in every stream.
    """

    __test__ = False  # pytest takes classes of this name for tests

    def __init__(self, app: Declaration, *, shards: int = 2, partitions: int = 1) -> None:
        plan = app.plan()
        self._sources = {source.name: source for source in plan.sources}
        self._views = {output.name: output for output in plan.outputs if isinstance(output, View)}
        self._program = compiled(plan, shards)
        self._runner = Runner(self._program)
        self._partitions = partitions
        self._offsets = {name: [0] * partitions for name in self._sources}
        self._progress = {name: Progress() for name in self._sources}
        self._held: dict[str, dict[tuple[Any, ...], Row]] = {name: {} for name in self._views}
        self._side: dict[str, list[Row]] = {}
        self._accounting = Accounting()
        self._epoch = 0
        self._before = BEGINNING
        self._now: int | None = None

    def send(self, stream: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> None:
        """Send records to a stream, and let the app take them in as one epoch."""
        source = self._source(stream)
        records = self._records(source, rows)
        latest = self._latest(source, records)
        now = self._now if self._now is not None else max([*latest.values(), 0])
        self._progress[stream] = self._progress[stream].observe(latest, now)
        for name, progress in self._progress.items():
            rule = self._sources[name].watermark
            if rule is not None:
                self._progress[name] = progress.advance(rule, now, self._program.closing)
        self._run({stream: records}, self._watermark())

    def advance(self, to: Moment) -> None:
        """Event time comes to `to` in every stream: windows that end by then fire."""
        moment = _micros(to)
        self._now = max(self._now or moment, moment)
        self._progress = {name: replace(progress, watermark=max(progress.watermark, moment)) for name, progress in self._progress.items()}
        self._run({}, max(moment, self._before))

    def end(self) -> None:
        """The input is complete: every window fires."""
        self._run({}, END)

    def restart(self) -> None:
        """Crash and come back: go on from what the state store holds."""
        self._runner.restart()

    def rows(self, view: str) -> list[Row]:
        """What a view holds, in the order of its keys."""
        if view not in self._held:
            raise PlanError(f"there is no view {view!r}", hint=f"views: {', '.join(self._held) or 'none'}")
        return [row for _, row in sorted(self._held[view].items(), key=lambda item: [(part is None, part) for part in item[0]])]

    def late(self, stream: str) -> list[Row]:
        """The late records of a stream so far, with `step`, `reason`, `watermark` and the window they missed."""
        return self._side.get(f"{self._source(stream).name}.late", [])

    def dead_letters(self, stream: str) -> list[Row]:
        """The bad records of a stream so far, with `step`, `reason`, and the place they came from."""
        return self._side.get(f"{self._source(stream).name}.dead", [])

    def accounting(self) -> list[dict[str, Any]]:
        """One dictionary a step: step, in, out, late, duplicate, filtered, dead_letter."""
        return self._accounting.rows()

    def __enter__(self) -> TestDriver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return

    def _run(self, batches: Mapping[str, pl.DataFrame], after: int) -> None:
        self._epoch += 1
        idle = any(progress.idle for progress in self._progress.values())
        time = EpochTime(self._epoch, self._before, max(after, self._before), idle)
        reached, accounting = self._runner.epoch(batches, time, self._limit(batches))
        self._accounting.unite(accounting)
        self._before = time.after
        for target, frames in reached.items():
            if target in self._views:
                self._fold(self._views[target], frames)
            else:
                self._side.setdefault(target, []).extend(row for frame in frames for row in frame.to_dicts())

    def _fold(self, view: View, frames: list[pl.DataFrame]) -> None:
        held, names = self._held[view.name], view.node.columns.names
        changelog = pl.concat(frames)
        for row in (as_upserts(changelog, view.key) if OP in changelog.columns else changelog).to_dicts():
            key = tuple(row[name] for name in view.key)
            if row.get(OP, 1) > 0:
                held[key] = {name: row[name] for name in names}
            else:
                held.pop(key, None)

    def _watermark(self) -> int:
        known = [progress.watermark for name, progress in self._progress.items() if self._sources[name].watermark is not None]
        return min(known, default=self._before)

    def _limit(self, batches: Mapping[str, pl.DataFrame]) -> int:
        """Times later than this are not believed; before any time was set, nothing is too far ahead."""
        rules = [self._sources[name].watermark for name in batches]
        ahead = [to_microseconds(0) + int(rule.max_ahead.total_seconds() * 1e6) for rule in rules if rule is not None]
        return END if self._now is None or not ahead else self._now + min(ahead)

    def _records(self, source: Source, rows: Sequence[Mapping[str, Any]] | pa.Table) -> pl.DataFrame:
        try:
            table = rows.select(source.columns.names).cast(source.columns) if isinstance(rows, pa.Table) else _table(source, rows)
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError) as error:
            raise SchemaError(
                f"a record does not fit stream {source.name!r}: {error}", hint=f"its columns are {ddl(source.columns)}"
            ) from error
        places = [0] * table.num_rows
        if source.key and self._partitions > 1:
            keys = encode_keys([table.column(name).combine_chunks() for name in source.key])
            # Records without a key go to any partition; here to the first.
            places = [max(0, place) for place in partitions_of(keys, self._partitions).tolist()]
        offsets = []
        for place in places:
            offsets.append(self._offsets[source.name][place])
            self._offsets[source.name][place] += 1
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return frame.with_columns(pl.Series(PARTITION, places, pl.Int32), pl.Series(OFFSET, offsets, pl.Int64))

    def _latest(self, source: Source, records: pl.DataFrame) -> dict[int, int]:
        if source.time is None or not records.height:
            return {}
        times = records.select(PARTITION, pl.col(source.time).cast(pl.Int64).alias("time")).filter(
            pl.col("time") <= self._limit({source.name: records})
        )
        return dict(times.group_by(PARTITION).agg(pl.col("time").max()).drop_nulls().rows())

    def _source(self, name: str) -> Source:
        if name not in self._sources:
            raise PlanError(f"there is no stream {name!r}", hint=f"streams: {', '.join(self._sources)}")
        return self._sources[name]


def _table(source: Source, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    for row in rows:
        for name in row:
            if name not in source.columns.names:
                raise KeyError(f"no column {name!r}")
    moments = [field.name for field in source.columns if pa.types.is_timestamp(field.type)]
    ready = [{name: _micros(value) if name in moments and isinstance(value, str) else value for name, value in row.items()} for row in rows]
    return pa.Table.from_pylist(ready, schema=source.columns)


def _micros(moment: Moment | int) -> int:
    return to_microseconds(datetime.fromisoformat(moment) if isinstance(moment, str) else moment)
