"""A program: a plan made ready to run, with flows without state, operators with state in levels, and sinks, connected by packets.

The same program runs in Spark, in the test driver and in the Lab; it does no I/O and knows no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from headrace.engine.entry import Entry
from headrace.engine.ingest import ingest, resume, resume_transformed
from headrace.engine.operate import OperatorShard, operate, table_of
from headrace.engine.packet import Packet
from headrace.engine.program.computed_columns import computed
from headrace.engine.program.flow import Flow
from headrace.engine.program.spark_step import SparkStep
from headrace.engine.route import Result, Router
from headrace.operators.aggregates.partials import FAULT
from headrace.operators.changes import CHANGED, OP, TIME
from headrace.operators.columns import ALL
from headrace.operators.contract import ByWallClock, OperatorSpec, Stateful
from headrace.operators.event_time.epoch_time import BEGINNING, EpochTime
from headrace.operators.event_time.record_time import ComputedTime
from headrace.operators.expressions import REASON, Compiled
from headrace.operators.expressions import compile as compiled_form
from headrace.operators.frames import columns_of, without
from headrace.operators.state.store import Store
from headrace.plan.expressions import Typed
from headrace.plan.source_time import EventTime


@dataclass(frozen=True)
class Origin:
    """A source: its columns, its event time, what follows it, and whether late records are kept."""

    name: str
    columns: pa.Schema
    time: EventTime | None
    flow: Flow
    keeps_late: bool = True
    max_ahead: timedelta | None = None
    """How much later than the wall clock a time may be."""

    @cached_property
    def moment(self) -> ComputedTime | None:
        """The event time of a record, as it is computed."""
        return None if self.time is None else ComputedTime.of(self.time, self.max_ahead)


@dataclass(frozen=True)
class Operator:
    """A stateful step: its ports, the columns it emits, and what follows it."""

    spec: OperatorSpec
    entries: Mapping[str, Entry]
    """The way into each port."""
    level: int
    outputs: tuple[tuple[str, Typed], ...]
    columns: tuple[str, ...]
    flow: Flow
    origin: str
    gathers: bool = False
    """Whether all records of a key meet one by one, so that a hot one has one core."""
    colocated_with: str = ""
    """The operator before it on whose shards it works, with all rows of that at hand."""
    upserts: bool = False
    """Whether all that follows takes a row as replacing that of its key: nothing says that a row which is replaced does not hold."""

    def fresh(self) -> Stateful:
        """The operator of one shard, with no state yet."""
        return self.spec.fresh()

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that determine the shard of a row of its state."""
        return next(entry.by for entry in self.entries.values() if not entry.port.broadcast)

    def made(self, results: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Results with the output columns, and the rows for which these cannot be computed, with their `_reason`."""
        failed = []
        if FAULT in results.columns:
            known = results.get_column(FAULT).is_null()
            failed += [] if known.all() else [results.filter(~known).rename({FAULT: REASON})]
            results = without(results if known.all() else results.filter(known), FAULT)
        kept = [column for column in results.columns if column not in {c for c, _ in self._finish} and column != ALL]
        made, bad = computed(results, self._finish, kept)
        failed += [] if bad is None else [bad]
        return columns_of(made, [*self.columns, TIME, OP, *([CHANGED] if CHANGED in made.columns else [])]), failed

    @cached_property
    def _finish(self) -> list[tuple[str, Compiled]]:
        return [(name, compiled_form(typed)) for name, typed in self.outputs]


class StateName(NamedTuple):
    """The place of an operator's state: the id of its step, and the fingerprint of what the step computes."""

    id: str
    fingerprint: str = ""


@dataclass(frozen=True)
class OutputSnapshot:
    """The epoch in which all live rows of an operator go through `flow`, and its changes only through the `rest`."""

    epoch: int
    flow: Flow
    rest: Flow


@dataclass(frozen=True)
class Outlet:
    """A view or sink: its columns, and the key by which its records fold and are distributed over shards."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


@dataclass(frozen=True)
class Aside:
    """The late records or dead letters of an origin as a stream: their columns, and what follows them."""

    origin: str
    columns: tuple[str, ...]
    flow: Flow


@dataclass(frozen=True)
class Program:
    """Everything a job does with a record."""

    name: str
    shards: int
    origins: Mapping[str, Origin]
    operators: Mapping[str, Operator]
    outlets: Mapping[str, Outlet]
    cuts: Mapping[str, SparkStep] = field(default_factory=dict)
    side_streams: Mapping[str, Aside] = field(default_factory=dict)
    """The streams of late records and dead letters, by their topic."""
    beyond_side_streams: frozenset[str] = frozenset()
    """The steps behind these streams, which feed none of them."""
    snapshots: Mapping[str, OutputSnapshot] = field(default_factory=dict)
    """The operators whose tables new outputs begin with."""
    names: Mapping[str, StateName] = field(default_factory=dict)
    """Where the state of operators is stored, if that is not under their own names."""

    def stored_as(self, operator: str) -> StateName:
        return self.names.get(operator, StateName(operator))

    @property
    def by_partition(self) -> bool:
        """Whether all that comes of a record stays with its partition: no step has state, Spark evaluates none, and no output has a
        key."""
        return not self.operators and not self.cuts and not any(outlet.key for outlet in self.outlets.values())

    @property
    def levels(self) -> int:
        """The largest number of operators in a row."""
        return max((operator.level for operator in self.operators.values()), default=0)

    def closing(self, moment: int) -> int:
        """The end of the last window that a moment, or a result it is part of, can be in."""
        flows = [*(origin.flow for origin in self.origins.values()), *(side.flow for side in self.side_streams.values())]
        return max((self._closing(flow, moment) for flow in flows), default=moment)

    @property
    def clocked(self) -> bool:
        """Whether there are windows of the wall clock, which end without a record or a watermark that moves."""
        return bool(self._clocked)

    def due(self, before: int, clock: int, taken_at: int) -> bool:
        """Whether a window of the wall clock that may have records has ended since a moment; the last records were taken in at
        `taken_at`."""
        return taken_at > BEGINNING and any(spec.next_end(before) <= min(clock, spec.last_end(taken_at)) for spec in self._clocked)

    def ingest(self, source: str, records: pl.DataFrame, time: EpochTime, limit: int, home: int | None = None) -> Result:
        """Ingest a batch of a source's records, with their `_partition` and `_offset`; times above `limit` are not believed.

        With `home`, all that comes of them goes to that shard.
        """
        result = ingest(Router(self, time, source, home), self.origins[source], records, limit)
        if home is not None:
            result.packets = [replace(packet, shard=home) for packet in result.packets]
        return result

    def step(self, place: OperatorShard, packets: Iterable[Packet], time: EpochTime, store: Store) -> Result:
        """Run one shard of an operator on its packets of an epoch, and advance time."""
        operator, snapshot = self.operators[place.operator], self.snapshots.get(place.operator)
        if snapshot is None or snapshot.epoch != time.epoch:
            return operate(Router(self, time, operator.origin, place.shard), place, list(packets), store)
        program = replace(self, operators={**self.operators, place.operator: replace(operator, flow=snapshot.rest)})
        router = Router(program, time, operator.origin, place.shard)
        result = operate(router, place, list(packets), store)
        rows = table_of(operator, place.state)
        if rows is not None:
            router.flow(snapshot.flow, rows)
        return result

    def resume(self, cut: str, frame: pl.DataFrame, time: EpochTime, shard: int) -> Result:
        """Continue after a step of Spark's, with a frame that now also has its answers."""
        declared = self.cuts[cut]
        return resume(Router(self, time, declared.origin, shard if declared.level else None), declared, frame)

    def resume_transformed(self, cut: str, frame: pl.DataFrame, time: EpochTime) -> Result:
        """Continue after a function of the user's, with its result."""
        return resume_transformed(Router(self, time, self.cuts[cut].origin), self.cuts[cut], frame)

    def shipped(self) -> Program:
        """The program as tasks need it: without the user's functions, which only the driver calls and which may not travel."""
        return replace(self, cuts={name: replace(cut, function=None) for name, cut in self.cuts.items()})

    @property
    def observed(self) -> frozenset[str]:
        """Steps that may drop and multiply records unobserved: only their input and their output are counted."""
        return frozenset(cut.step for cut in self.cuts.values() if cut.transforms)

    @property
    def _clocked(self) -> list[ByWallClock]:
        return [operator.spec for operator in self.operators.values() if isinstance(operator.spec, ByWallClock)]

    def _closing(self, flow: Flow, moment: int) -> int:
        behind = [*flow.branches, *(self.cuts[name].flow for name, _ in flow.exits if name in self.cuts)]
        ends = [moment, *(self._closing(branch, moment) for branch in behind)]
        for operator in [self.operators[name] for name, _ in flow.exits if name in self.operators]:
            end = operator.spec.closing(moment)
            # The time of a window's result is its last moment.
            ends += [end, self._closing(operator.flow, max(moment, end - 1))]
        return max(ends)
