"""A plan made ready to run: flows without state, operators with state in levels, and sinks, tied together by packets.

The same program runs in Spark, in the test driver and in the Lab; it does no I/O and knows no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import polars as pl
import pyarrow as pa

from headrace.operators.accounting import Accounting
from headrace.operators.aggregates import FAULT
from headrace.operators.candidates import Candidates, CandidateSpec
from headrace.operators.changes import ADD, CHANGED, OP, TIME
from headrace.operators.cut import Cut
from headrace.operators.exits import ALL, Entry
from headrace.operators.expressions import REASON, Compiled
from headrace.operators.expressions import compile as compiled_form
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.flow import ROW, Flow, computed
from headrace.operators.grouping import Groups, GroupSpec, Latest, TableSpec
from headrace.operators.legible import as_json
from headrace.operators.packet import ROWS, SUSPECTS, Packet, sharded
from headrace.operators.panes import WindowSpec
from headrace.operators.sessions import START, STOP, Sessions, SessionSpec
from headrace.operators.sides import dead_topic, late_columns, late_topic
from headrace.operators.store import Store
from headrace.operators.time import EpochTime
from headrace.operators.windows import Windows
from headrace.plan.expressions import Typed

PARTITION, OFFSET = "_partition", "_offset"
_ORIGINAL, _PACKET, _PLACE = "_original", "_packet", "_place"
_FEW = 10_000
Stateful = Windows | Sessions | Groups | Latest | Candidates


@dataclass(frozen=True)
class Origin:
    """A source: its columns, its event time, what follows it, and whether late records are kept."""

    name: str
    columns: pa.Schema
    time: str | None
    flow: Flow
    keeps_late: bool = True


@dataclass(frozen=True)
class Operator:
    """A stateful step: the way in, the columns it gives out, and what follows it."""

    entry: Entry
    level: int
    outputs: tuple[tuple[str, Typed], ...]
    columns: tuple[str, ...]
    flow: Flow
    origin: str

    def fresh(self, shard: int) -> Stateful:
        """The operator of one shard, with no state yet."""
        spec = self.entry.spec
        if isinstance(spec, WindowSpec):
            return Windows(spec)
        if isinstance(spec, GroupSpec):
            return Groups(spec, shard)
        if isinstance(spec, CandidateSpec):
            return Candidates(spec, shard)
        return Latest(spec, shard) if isinstance(spec, TableSpec) else Sessions(spec)

    @cached_property
    def finish(self) -> list[tuple[str, Compiled]]:
        return [(name, compiled_form(typed)) for name, typed in self.outputs]


@dataclass(frozen=True)
class Outlet:
    """A view or sink: the columns it wants, and the key by which its records fold and spread over shards."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """One shard of an operator with its state."""

    operator: str
    shard: int
    state: Stateful


@dataclass
class Result:
    """What a stage made in an epoch."""

    packets: list[Packet] = field(default_factory=list)
    accounting: Accounting = field(default_factory=Accounting)


@dataclass(frozen=True)
class Program:
    """Everything a job does with a record."""

    name: str
    shards: int
    origins: Mapping[str, Origin]
    operators: Mapping[str, Operator]
    outlets: Mapping[str, Outlet]
    cuts: Mapping[str, Cut] = field(default_factory=dict)

    @property
    def levels(self) -> int:
        """How many operators stand one behind the other at most."""
        return max((operator.level for operator in self.operators.values()), default=0)

    def closing(self, moment: int) -> int:
        """When everything of a moment is out: the end of the last window that it, or a result it is part of, can be in."""
        return max((self._closing(origin.flow, moment) for origin in self.origins.values()), default=moment)

    def ingest(self, source: str, records: pl.DataFrame, time: EpochTime, limit: int) -> Result:
        """Take in a batch of a source's records, with their `_partition` and `_offset`; a time above `limit` is not believed."""
        return _Pass(self, time, source).ingest(records, limit)

    def step(self, place: Place, packets: Iterable[Packet], time: EpochTime, store: Store) -> Result:
        """Let one shard of an operator take in its packets of an epoch, and time move on."""
        return _Pass(self, time, self.operators[place.operator].origin, place.shard).operate(place, list(packets), store)

    def resume(self, cut: str, frame: pl.DataFrame, time: EpochTime, shard: int) -> Result:
        """Go on behind a step of Spark's, with a frame that went into it and now has its answers too."""
        declared = self.cuts[cut]
        return _Pass(self, time, declared.origin, shard if declared.level else None).resume(declared, frame)

    def take_back(self, cut: str, frame: pl.DataFrame, time: EpochTime) -> Result:
        """Go on behind a function of the user's, with what it made."""
        return _Pass(self, time, self.cuts[cut].origin).take_back(self.cuts[cut], frame)

    def shipped(self) -> Program:
        """The program as tasks need it: without the user's functions, which only the driver calls and which may not travel."""
        return replace(self, cuts={name: replace(cut, function=None) for name, cut in self.cuts.items()})

    @property
    def observed(self) -> frozenset[str]:
        """Steps that may drop and multiply records unseen: only what goes in and what comes out is counted."""
        return frozenset(cut.step for cut in self.cuts.values() if cut.transforms)

    def _closing(self, flow: Flow, moment: int) -> int:
        behind = [*flow.branches, *(self.cuts[name].flow for name in flow.exits if name in self.cuts)]
        ends = [moment, *(self._closing(branch, moment) for branch in behind)]
        for operator in [self.operators[name] for name in flow.exits if name in self.operators]:
            end = operator.entry.closing(moment)
            # The time of a window's result is its last moment.
            ends += [end, self._closing(operator.flow, max(moment, end - 1))]
        return max(ends)


class _Pass:
    """One stage of one epoch at work."""

    def __init__(self, program: Program, time: EpochTime, origin: str, shard: int | None = None) -> None:
        self._program = program
        self._time = time
        self._origin = program.origins[origin]
        self._shard = shard
        self._records: pl.DataFrame | None = None
        self._result = Result()

    def ingest(self, records: pl.DataFrame, limit: int) -> Result:
        origin = self._origin
        self._records = records
        time = pl.lit(None) if origin.time is None else pl.col(origin.time)
        frame = records.with_row_index(ROW).with_columns(time.cast(pl.Int64).alias(TIME))
        times = frame.get_column(TIME)
        # To look first costs little; to sort out bad records copies all the others.
        if origin.time is not None and (times.null_count() or (times > limit).any()):
            problem = (
                pl.when(pl.col(TIME).is_null()).then(pl.lit(f"no event time in {origin.time}"))
                .when(pl.col(TIME) > limit).then(pl.lit(f"{origin.time} is too far in the future"))
            )  # fmt: skip
            frame = frame.with_columns(problem.alias(REASON))
            bad = frame.filter(pl.col(REASON).is_not_null())
            frame = frame.filter(pl.col(REASON).is_null()).drop(REASON)
            self._dead(origin.name, bad)
        self._result.accounting.add(origin.name, taken=records.height, out=frame.height)
        self._flow(origin.flow, frame)
        return self._result

    def resume(self, cut: Cut, frame: pl.DataFrame) -> Result:
        if _ORIGINAL in frame.columns:
            self._records = frame.select(_ORIGINAL).unnest(_ORIGINAL)
            frame = frame.drop(_ORIGINAL).with_row_index(ROW)
        self._flow(cut.flow, frame)
        return self._result

    def take_back(self, cut: Cut, frame: pl.DataFrame) -> Result:
        origin = self._origin
        self._result.accounting.add(cut.step, out=frame.height)
        places = [pl.lit(None, pl.Int32).alias(PARTITION), pl.lit(None, pl.Int64).alias(OFFSET)]
        kinds = [(column.name, dtype(column.type)) for column in origin.columns]
        kept = [pl.col(name) if frame.schema.get(name) == kind else pl.lit(None, kind).alias(name) for name, kind in kinds]
        self._records = frame.select(*kept, *places)
        frame = frame.with_row_index(ROW)
        if origin.time is not None:
            frame = frame.with_columns(pl.col(origin.time).cast(pl.Int64).alias(TIME))
            known = frame.get_column(TIME).is_not_null()
            if not known.all():
                bad = frame.filter(~known).with_columns(pl.lit(f"no event time in {origin.time}").alias(REASON))
                self._result.accounting.add(f"{cut.step}.time", taken=frame.height, out=frame.height - bad.height)
                self._dead(f"{cut.step}.time", bad)
                frame = frame.filter(known)
        self._flow(cut.flow, frame)
        return self._result

    def operate(self, place: Place, packets: list[Packet], store: Store) -> Result:
        name, state = place.operator, place.state
        operator = self._program.operators[name]
        rows = [packet.frame for packet in packets if packet.kind == ROWS]
        if isinstance(state, Sessions):
            suspects = [packet for packet in packets if packet.kind != ROWS]
            numbered = [_numbered(packet.frame, number) for number, packet in enumerate(suspects)]
            results, late = state.run(rows, numbered, self._time, store)
            count = sum(packet.frame.height for packet in suspects)
            lost = 0 if late is None else late.height
            self._result.accounting.add(name, taken=count, out=count - lost, late=lost)
            if late is not None:
                self._late_suspects(name, late, suspects, place.shard)
        else:
            results = state.run(rows, self._time, store)
        if results:
            self._give_out(operator, name, pl.concat(results, how="diagonal"))
        return self._result

    def _give_out(self, operator: Operator, name: str, results: pl.DataFrame) -> None:
        if FAULT in results.columns:
            known = results.get_column(FAULT).is_null()
            self._fail(name, results.filter(~known).rename({FAULT: REASON}))
            results = results.filter(known).drop(FAULT)
        kept = [column for column in results.columns if column not in {c for c, _ in operator.finish} and column != ALL]
        made, bad = computed(results, operator.finish, kept)
        if bad is not None:
            self._fail(name, bad)
        self._flow(operator.flow, made.select(*operator.columns, TIME, OP, *([CHANGED] if CHANGED in made.columns else [])))

    def _fail(self, name: str, bad: pl.DataFrame) -> None:
        """Results that cannot be computed are dead letters of their own, with their key and window: no record is lost with them."""
        # What never held was never given out, so its retraction takes nothing back.
        bad = bad.filter(pl.col(OP) == ADD)
        if bad.is_empty():
            return
        self._result.accounting.add(f"{name}.results", taken=bad.height)
        self._dead(f"{name}.results", bad.select(REASON, *(column for column in bad.columns if not column.startswith("_"))))

    def _flow(self, flow: Flow, frame: pl.DataFrame) -> None:
        for stage in flow.stages:
            taken = frame.height
            outcome = stage.run(frame, self._time)
            frame = outcome.frame
            bad = 0 if outcome.bad is None else outcome.bad.height
            # An array makes several records of one: what goes on is counted where it goes.
            out = taken - outcome.filtered - bad
            self._result.accounting.add(stage.step.name, taken=taken, out=out, filtered=outcome.filtered)
            self._dead(stage.step.name, outcome.bad)
        for exit_name in flow.exits:
            self._exit(exit_name, frame)
        for branch in flow.branches:
            self._flow(branch, frame)

    def _leave(self, cut: Cut, frame: pl.DataFrame) -> None:
        """Send records to a step of Spark's, with what they were when they came."""
        if cut.transforms:
            self._result.accounting.add(cut.step, taken=frame.height)
            # Slices for several tasks: where records are few, one task alone is quicker.
            size = max(_FEW, -(-frame.height // self._program.shards))
            slices = frame.select(cut.columns.names).iter_slices(size)
            self._result.packets += [Packet(cut.name, shard, part) for shard, part in enumerate(slices) if part.height]
            return
        if self._records is not None:
            came = self._records[frame.get_column(ROW)].select(pl.struct(*self._origin.columns.names, PARTITION, OFFSET).alias(_ORIGINAL))
            frame = frame.drop(ROW, PARTITION, OFFSET, strict=False).hstack(came)
        if frame.height:
            self._result.packets.append(Packet(cut.name, self._shard or 0, frame))

    def _exit(self, name: str, frame: pl.DataFrame) -> None:
        if name in self._program.cuts:
            self._leave(self._program.cuts[name], frame)
            return
        if name in self._program.outlets:
            outlet = self._program.outlets[name]
            self._result.accounting.add(name, taken=frame.height, out=frame.height)
            wanted = [column for column in (*outlet.columns, TIME, OP) if column in frame.columns]
            self._send(name, frame.select(wanted), outlet.key)
            return
        entered = self._program.operators[name].entry.enter(frame, self._time, self._program.shards)
        late = 0 if entered.late is None else entered.late.height
        bad = 0 if entered.bad is None else entered.bad.height
        self._result.accounting.add(name, taken=entered.accepted + late + bad, out=entered.accepted, late=late)
        self._dead(name, entered.bad)
        self._late(name, entered.late, 0)
        self._result.packets += entered.packets
        if entered.suspects is not None:
            self._suspect(name, entered.suspects)

    def _suspect(self, name: str, suspects: pl.DataFrame) -> None:
        """Send records that only an operator's state can judge, with what they were when they came."""
        if self._records is not None:
            came = self._records[suspects.get_column(ROW)].select(pl.struct(self._origin.columns.names).alias(_ORIGINAL))
            suspects = suspects.hstack(came)
        by = self._program.operators[name].entry.spec
        assert isinstance(by, SessionSpec)
        self._result.packets += sharded(name, suspects, by.by, self._program.shards, f"{SUSPECTS}{self._origin.name}")

    def _send(self, target: str, frame: pl.DataFrame, key: tuple[str, ...]) -> None:
        """Send records to a sink: those of an operator from its own shard, so that each part of a sink has one writer."""
        if not frame.height:
            return
        if self._shard is not None or not key:
            self._result.packets.append(Packet(target, self._shard or 0, frame))
        else:
            self._result.packets += sharded(target, frame, key, self._program.shards)

    def _late_suspects(self, step: str, late: pl.DataFrame, suspects: list[Packet], shard: int) -> None:
        """Send each back to the stream it came from: streams that are united may have columns of their own."""
        for number, packet in enumerate(suspects):
            mine = late.filter(pl.col(_PACKET) == number)
            if mine.height:
                self._origin = self._program.origins[packet.kind.removeprefix(SUSPECTS)]
                came = packet.frame[mine.get_column(_PLACE)]
                self._late(step, came.with_columns(mine.get_column(START), mine.get_column(STOP)), shard)

    def _late(self, step: str, late: pl.DataFrame | None, shard: int) -> None:
        """Send late records, as they came, to the late topic of their stream, with the window they missed."""
        if late is None or not self._origin.keeps_late:
            return
        if self._records is not None:
            original = self._records[late.get_column(ROW)].select(self._origin.columns.names)
        else:
            original = late.select(_ORIGINAL).unnest(_ORIGINAL) if _ORIGINAL in late.columns else self._unknown(late.height)
        moment = pl.Datetime("us", "UTC")
        values = (
            pl.lit(step),
            pl.lit("every window of the record is closed"),
            pl.lit(self._time.before).cast(moment),
            pl.col(START).cast(moment),
            pl.col(STOP).cast(moment),
        )
        names = late_columns(self._origin.columns).names
        why = late.select(value.alias(name) for name, value in zip(names, values, strict=True))
        self._result.packets.append(Packet(late_topic(self._origin.name), shard, original.hstack(why)))

    def _unknown(self, count: int) -> pl.DataFrame:
        """What is late is a result, not a record of the stream: its columns are empty."""
        none = pl.from_arrow(self._origin.columns.empty_table())
        assert isinstance(none, pl.DataFrame)
        return none.clear(count)

    def _dead(self, step: str, bad: pl.DataFrame | None) -> None:
        """Send bad records to the dead letters of their stream, with the reason and the place they came from."""
        if bad is None or not bad.height:
            return
        self._result.accounting.add(step, dead_letter=bad.height)
        if self._records is not None and ROW in bad.columns:
            original = self._records[bad.get_column(ROW)]
            partition, offset = original.get_column(PARTITION), original.get_column(OFFSET)
            original = original.select(self._origin.columns.names)
        else:
            partition = offset = pl.Series([None] * bad.height, dtype=pl.Int64)
            original = bad.drop(REASON)
        letters = pl.DataFrame(
            {
                "step": pl.Series([step] * bad.height),
                "reason": bad.get_column(REASON),
                "partition": partition.cast(pl.Int32),
                "offset": offset.cast(pl.Int64),
                "record": as_json(original),
            }
        )
        self._result.packets.append(Packet(dead_topic(self._origin.name), 0, letters))


def _numbered(frame: pl.DataFrame, packet: int) -> pl.DataFrame:
    """Doubtful records that know where they are, without what they were when they came."""
    return frame.drop(_ORIGINAL, strict=False).with_columns(pl.lit(packet).alias(_PACKET), pl.row_index(_PLACE))
