"""The story of a row: the records that made it, by replaying its key from the log through the operators of the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.core.errors import JobError, PlanError
from headrace.core.nearest import choices
from headrace.engine.accounting import ENDS, Accounting
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.program.compiler import compiled
from headrace.engine.runner import Runner
from headrace.jobs.directory import JobDirectory
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.operators.changes import net_changes
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.event_time.epoch_time import BEGINNING, LATEST, EpochTime
from headrace.ops.why.candidates import APPENDED, CandidateSearch
from headrace.plan.plan import Plan, View
from headrace.plan.side_streams import late_names
from headrace.plan.topics import late_topic

# What says how often a row was emitted depends on epochs, which are not those of the job.
_OF_EPOCHS = frozenset({"pane", "revision"})
_START, _STOP = "window_start", "window_end"
_MOST = 2_000

Row = dict[str, Any]


@dataclass(frozen=True)
class RecordStory:
    """One record, and what each step made of it: out, late, duplicate, filtered or dead_letter."""

    stream: str
    partition: int
    offset: int
    record: Row
    steps: Mapping[str, str]

    @property
    def counts(self) -> bool:
        """Whether it came through every step that it met."""
        return all(end == "out" for end in self.steps.values())


@dataclass(frozen=True)
class RowStory:
    """Rows of a view with a key, the records of that key, and the rows that these make when they are replayed."""

    view: str
    rows: Sequence[Row]
    replayed: Sequence[Row]
    records: Sequence[RecordStory]
    begins: Mapping[str, int] = field(default_factory=dict)
    """Streams whose first records retention has removed, and the first offset that is there."""

    @property
    def exact(self) -> bool:
        """Whether the records make the very rows that the view has."""
        return _comparable(self.rows) == _comparable(self.replayed)

    def __str__(self) -> str:
        counted = [record for record in self.records if record.counts]
        lines = [f"view {self.view!r} has {row}" for row in self.rows] or [f"view {self.view!r} has no row with this key"]
        lines.append(
            f"{len(counted):,} of {len(self.records):,} records of this key made it" + ("" if self.exact else ", as far as is known")
        )
        if not self.exact:
            lines.append(f"  replayed they make {list(self.replayed)}")
            lines += [f"  the log of {stream!r} begins at offset {offset:,} only" for stream, offset in self.begins.items()]
            if not self.begins and any(_START in row for row in self.rows):
                lines.append(
                    "  the replay does not know when windows closed: a record that came after one of its windows, or after the session that"
                )
                lines.append("  it would have extended, was closed (partly late), has no part in that row")
        lines += [
            f"  {one.stream}/{one.partition} offset {one.offset:,}: {_steps(one)}   {one.record}" for one in self.records[:_MOST]
        ]  # fmt: skip
        return "\n".join(lines)


def story_of(plan: Plan, view: str, wanted: Mapping[str, pa.Scalar], place: JobDirectory, log: Log) -> RowStory:
    """The story of the rows of a view that have these values in columns of its key."""
    output = next((output for output in plan.views if output.name == view), None)
    reached = place.committed_plan()
    if output is None:
        raise PlanError(f"there is no view {view!r}", hint=choices(view, [one.name for one in plan.views], "views"))
    if reached is None:
        raise JobError(f"job {place.name!r} has finished no epoch", hint="headrace why shows what it waits for")
    alone = replace(plan, outputs=(output,), alerts=())
    _refuse_other_systems(alone)
    rows = _present(log, output, wanted)
    replay = _Replay(alone, output, log, reached)
    records = list(replay.records(wanted, rows))
    begins = {source.name: first for source in alone.sources if (first := _first(log, source.name))}
    return RowStory(view, rows, _matching(replay.finished(), wanted), records, begins)


class _Replay:
    """Takes in records of one key, one at a time, as one shard after the other did."""

    def __init__(self, plan: Plan, output: View, log: Log, reached: EpochPlan) -> None:
        self._plan, self._output, self._log, self._reached = plan, output, log, reached
        self._program = compiled(plan, 1)
        for cut in self._program.cuts.values():
            raise cut.refuse_without_spark()
        self._runner = Runner(self._program)
        self._held: dict[tuple[Any, ...], Row] = {}
        self._epoch = 0

    def records(self, wanted: Mapping[str, pa.Scalar], rows: Sequence[Row]) -> Iterator[RecordStory]:
        found = []
        for source in self._plan.sources:
            candidates = CandidateSearch(self._program, self._log, wanted).of(source.name, self._reached.positions[source.name])
            late = self._late(source.name)
            found += [(row[APPENDED], source.name, row, late) for row in self._inside(source.name, candidates, rows).to_dicts()]
        for _, stream, row, late in sorted(found, key=lambda one: (one[0], one[1], one[2][PARTITION], one[2][OFFSET])):
            record = {name: row[name] for name in self._program.origins[stream].columns.names}
            kept = late.get(str(tuple(record.items())))
            steps = {stream: "out", kept.pop(): "late"} if kept else _fates(self._take(stream, row))
            yield RecordStory(stream, row[PARTITION], row[OFFSET], record, steps)

    def finished(self) -> list[Row]:
        """The rows of the view once time has gone as far as it did in the job."""
        self._run({}, self._reached.watermark)
        return list(self._held.values())

    def _take(self, stream: str, row: Row) -> Accounting:
        columns = pl.DataFrame(self._program.origins[stream].columns.empty_table()).schema
        kinds = pl.Schema([*columns.items(), (PARTITION, pl.Int32()), (OFFSET, pl.Int64())])
        frame = pl.DataFrame([{name: row[name] for name in kinds}], schema=kinds)
        return self._run({stream: frame}, BEGINNING)

    def _run(self, batches: Mapping[str, pl.DataFrame], after: int) -> Accounting:
        self._epoch += 1
        limits = dict.fromkeys(self._program.origins, LATEST)
        time = EpochTime(self._epoch, BEGINNING, after, clock=self._reached.clock)
        reached, accounting = self._runner.epoch(batches, time, limits)
        if frames := reached.get(self._output.name):
            rows, removed = net_changes(pl.concat(frames, how="diagonal"), self._output.key)
            gone = [False] * rows.height if removed is None else removed.to_list()
            for row, is_gone in zip(rows.to_dicts(), gone, strict=True):
                key = tuple(row[name] for name in self._output.key)
                if is_gone:
                    self._held.pop(key, None)
                else:
                    self._held[key] = {name: row[name] for name in self._output.node.columns.names}
        return accounting

    def _inside(self, stream: str, records: pl.DataFrame, rows: Sequence[Row]) -> pl.DataFrame:
        """Of records with an event time those in the windows of the rows; others have no part in them."""
        moment = self._program.origins[stream].moment
        windows = [(row[_START], row[_STOP]) for row in rows if row.get(_START) is not None and row.get(_STOP) is not None]
        if moment is None or not windows or len(windows) < len(rows) or records.is_empty():
            return records
        time = moment.times().cast(pl.Datetime("us", "UTC"))
        return records.filter(pl.any_horizontal((time >= start) & (time < stop) for start, stop in windows))

    def _late(self, stream: str) -> dict[str, list[str]]:
        """The late records of a stream as the job kept them, and the steps that they were late for."""
        names, steps = self._program.origins[stream].columns.names, {node.name for node in self._plan.nodes}
        step = late_names(names)[0]
        try:
            kept = self._log.read(late_topic(stream)).to_pylist()
        except UnknownTopic:
            return {}
        found: dict[str, list[str]] = {}
        for row in (row for row in kept if row[step] in steps):
            found.setdefault(str(tuple((name, row[name]) for name in names)), []).append(row[step])
        return found


def _present(log: Log, output: View, wanted: Mapping[str, pa.Scalar]) -> list[Row]:
    try:
        table = log.snapshot(output.name).table.select(output.node.columns.names)
    except UnknownTopic:
        return []
    return _matching(table.to_pylist(), wanted)


def _matching(rows: Sequence[Row], wanted: Mapping[str, pa.Scalar]) -> list[Row]:
    values = {name: value.as_py() for name, value in wanted.items()}
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def _comparable(rows: Sequence[Row]) -> list[str]:
    return sorted(str({name: value for name, value in row.items() if name not in _OF_EPOCHS}) for row in rows)


def _fates(accounting: Accounting) -> dict[str, str]:
    """What became of one record in each step; where it became several, the first of them tells."""
    return {step: next((end for end in reversed(ENDS) if getattr(count, end)), "out") for step, count in accounting if count.taken}


def _steps(record: RecordStory) -> str:
    return ", ".join(f"{step} {end}" for step, end in record.steps.items())


def _first(log: Log, stream: str) -> int:
    topic = log.topic(stream)
    return max(log.partition(topic, index).state().start for index in range(topic.partitions))


def _refuse_other_systems(plan: Plan) -> None:
    for source in plan.sources:
        if source.connector is not None:
            raise PlanError(
                f"the records of stream {source.name!r} are in another system", why="a row is explained from the records in the log",
                hint="ask that system for the records of the key",
            )  # fmt: skip
