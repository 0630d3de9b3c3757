"""One stage of one epoch at work: records go through flows, enter operators, and leave for other shards, sinks and side topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from headrace.operators.accounting import Accounting
from headrace.operators.aggregates import FAULT
from headrace.operators.changes import ADD, CHANGED, OP, RETRACT, TIME
from headrace.operators.contract import START, STOP, Arrived, Stateful, Tabular
from headrace.operators.cut import Cut
from headrace.operators.entry import ALL, Entry
from headrace.operators.expressions import REASON
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.flow import ROW, Flow, computed
from headrace.operators.hot import hot_topic, sampled
from headrace.operators.packet import ROWS, SUSPECTS, Packet, sharded
from headrace.operators.sides import OFFSET, PARTITION, PROBLEM, RECORD, dead_letters, dead_topic, late_records, late_topic, undecoded
from headrace.operators.store import Store
from headrace.operators.time import EARLIEST, EpochTime

if TYPE_CHECKING:
    from headrace.operators.program import Operator, Program

_ORIGINAL, _PACKET, _PLACE = "_original", "_packet", "_place"
_FEW = 10_000


@dataclass(frozen=True)
class Place:
    """One shard of an operator with its state."""

    operator: str
    shard: int
    state: Stateful
    before: Stateful | None = None
    """The same shard of the operator that this one stands beside."""


@dataclass
class Result:
    """What a stage made in an epoch."""

    packets: list[Packet] = field(default_factory=list)
    accounting: Accounting = field(default_factory=Accounting)


class Passage:
    """One stage of one epoch, of a source, or of one shard of what is behind an operator."""

    def __init__(self, program: Program, time: EpochTime, origin: str, shard: int | None = None) -> None:
        self._program = program
        self._time = time
        self._origin = program.origins[origin]
        self._shard = shard
        self._records: pl.DataFrame | None = None
        self._result = Result()

    def ingest(self, records: pl.DataFrame, limit: int) -> Result:
        origin = self._origin
        taken = records.height
        records = self._decoded(records)
        self._records = records
        time = pl.lit(None) if origin.time is None else pl.col(origin.time)
        frame = records.with_row_index(ROW).with_columns(time.cast(pl.Int64).alias(TIME))
        times = frame.get_column(TIME)
        # To look first costs little; to sort out bad records copies all the others.
        if origin.time is not None and (times.null_count() or not times.is_between(EARLIEST, limit).all()):
            problem = (
                pl.when(pl.col(TIME).is_null()).then(pl.lit(f"no event time in {origin.time}"))
                .when(pl.col(TIME) > limit).then(pl.lit(f"{origin.time} is too far in the future"))
                .when(pl.col(TIME) < EARLIEST).then(pl.lit(f"{origin.time} is before the year 2"))
            )  # fmt: skip
            frame = frame.with_columns(problem.alias(REASON))
            bad = frame.filter(pl.col(REASON).is_not_null())
            frame = frame.filter(pl.col(REASON).is_null()).drop(REASON)
            self._dead(origin.name, bad)
        self._result.accounting.add(origin.name, taken=taken, out=frame.height)
        self._flow(origin.flow, frame)
        return self._result

    def _decoded(self, records: pl.DataFrame) -> pl.DataFrame:
        """The records without those that their source could not decode; these go to the dead letters as they came."""
        if PROBLEM not in records.columns:
            return records
        problems = records.get_column(PROBLEM)
        if problems.null_count() < records.height:
            bad = records.filter(problems.is_not_null())
            self._result.accounting.add(self._origin.name, dead_letter=bad.height)
            letters = undecoded(bad, self._origin.name)
            self._result.packets.append(Packet(dead_topic(self._origin.name), 0, letters))
            records = records.filter(problems.is_null())
        return records.drop(PROBLEM, RECORD)

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
        name = place.operator
        suspects = [packet for packet in packets if packet.kind != ROWS]
        numbered = [_numbered(packet.frame, number) for number, packet in enumerate(suspects)]
        table = None if place.before is None else partial(self._table, self._program.operators[name].beside, place.before)
        arrived = Arrived([packet.frame for packet in packets if packet.kind == ROWS], numbered, table)
        outcome = place.state.run(arrived, self._time, store)
        self._result.accounting.keep(name, *place.state.size)
        if outcome.counts:
            self._result.accounting.add(name, **outcome.counts)
        if outcome.late is not None:
            self._late_suspects(name, outcome.late, suspects, place.shard)
        if outcome.bad is not None:
            # They were counted out when they entered the state.
            self._result.accounting.add(name, out=-outcome.bad.height)
            self._dead(name, outcome.bad)
        if outcome.failed is not None:
            self._result.accounting.add(f"{name}.timers", taken=outcome.failed.height)
            self._dead(f"{name}.timers", outcome.failed)
        if outcome.results:
            self._give_out(self._program.operators[name], name, pl.concat(outcome.results, how="diagonal"))
        return self._result

    def _table(self, name: str, state: Stateful) -> pl.DataFrame | None:
        """All results of an operator that hold, as it gives them out."""
        assert isinstance(state, Tabular)
        rows = state.table()
        if rows is None:
            return None
        made, _ = self._made(self._program.operators[name], rows)
        return made

    def _give_out(self, operator: Operator, name: str, results: pl.DataFrame) -> None:
        made, failed = self._made(operator, results)
        for bad in failed:
            self._fail(name, bad)
            if operator.upserts:
                # What was given out of these keys before does not hold.
                nothing = bad.select(*operator.entry.spec.by, TIME, pl.lit(RETRACT, pl.Int8).alias(OP))
                made = pl.concat([made, nothing], how="diagonal")
        self._flow(operator.flow, made)

    def _made(self, operator: Operator, results: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Results with the columns that go out, and those for which they can't be computed."""
        failed = []
        if FAULT in results.columns:
            known = results.get_column(FAULT).is_null()
            failed.append(results.filter(~known).rename({FAULT: REASON}))
            results = results.filter(known).drop(FAULT)
        kept = [column for column in results.columns if column not in {c for c, _ in operator.finish} and column != ALL]
        made, bad = computed(results, operator.finish, kept)
        if bad is not None:
            failed.append(bad)
        return made.select(*operator.columns, TIME, OP, *([CHANGED] if CHANGED in made.columns else [])), failed

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
        self._enter(name, frame)

    def _enter(self, name: str, frame: pl.DataFrame) -> None:
        operator = self._program.operators[name]
        entry = operator.entry
        hot = None if operator.beside else sampled(frame, entry.spec.by, self._time.epoch)
        if hot is not None:
            seen = hot.with_columns(pl.lit(name).alias("step"), pl.lit(operator.gathers).alias("gathers"))
            self._result.packets.append(Packet(hot_topic(self._program.name), 0, seen))
        entered = entry.enter(frame, self._time)
        late = 0 if entered.late is None else entered.late.height
        bad = 0 if entered.bad is None else entered.bad.height
        self._result.accounting.add(name, taken=entered.accepted + late + bad, out=entered.accepted, late=late)
        self._dead(name, entered.bad)
        self._late(name, entered.late, 0)
        if operator.beside:
            self._result.packets.append(Packet(name, self._shard or 0, entered.rows))
            return
        self._result.packets += entry.packets(entered.rows, self._program.shards)
        if entered.suspects is not None:
            self._suspect(entry, entered.suspects)

    def _suspect(self, entry: Entry, suspects: pl.DataFrame) -> None:
        """Send records that only an operator's state can judge, with what they were when they came."""
        if self._records is not None:
            came = self._records[suspects.get_column(ROW)].select(pl.struct(self._origin.columns.names).alias(_ORIGINAL))
            suspects = suspects.hstack(came)
        kind = f"{SUSPECTS}{self._origin.name}"
        self._result.packets += sharded(entry.operator, suspects, entry.spec.by, self._program.shards, kind)

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
        letters = late_records(original, late.select(START, STOP), step, self._time.before)
        self._result.packets.append(Packet(late_topic(self._origin.name), shard, letters))

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
            places = original.select(PARTITION, OFFSET)
            original = original.select(self._origin.columns.names)
        else:
            none = pl.DataFrame(schema={PARTITION: pl.Int32, OFFSET: pl.Int64}).clear(bad.height)
            places = bad.select(PARTITION, OFFSET) if PARTITION in bad.columns else none
            original = bad.drop(REASON, PARTITION, OFFSET, strict=False)
        letters = dead_letters(original, places, step, bad.get_column(REASON))
        self._result.packets.append(Packet(dead_topic(self._origin.name), 0, letters))


def _numbered(frame: pl.DataFrame, packet: int) -> pl.DataFrame:
    """Doubtful records that know where they are, without what they were when they came."""
    return frame.drop(_ORIGINAL, strict=False).with_columns(pl.lit(packet).alias(_PACKET), pl.row_index(_PLACE))
