"""One stage of one epoch at work: records go through flows, enter operators, and leave for other shards, sinks and side topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from headrace.operators.accounting import Accounting
from headrace.operators.changes import ADD, OP, RETRACT, TIME
from headrace.operators.contract import Arrived, Stateful, Tabular
from headrace.operators.cut import Cut
from headrace.operators.expressions import REASON
from headrace.operators.flow import ROW, Flow
from headrace.operators.hot import sampled
from headrace.operators.originals import Originals, decoded
from headrace.operators.packet import ROWS, Packet, sharded
from headrace.operators.store import Store
from headrace.operators.suspects import Suspects, suspected
from headrace.operators.time import EARLIEST, EpochTime
from headrace.plan.topics import hot_topic

if TYPE_CHECKING:
    from headrace.operators.program import Operator, Program

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
        self._shard = shard
        self._came = Originals(program.origins[origin])
        self._result = Result()

    def ingest(self, records: pl.DataFrame, limit: int) -> Result:
        origin = self._came.origin
        taken = records.height
        records, undecoded = decoded(origin, records)
        if undecoded is not None:
            self._result.accounting.add(origin.name, dead_letter=undecoded.frame.height)
            self._result.packets.append(undecoded)
        self._came = Originals(origin, records)
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

    def resume(self, cut: Cut, frame: pl.DataFrame) -> Result:
        self._came, frame = self._came.arrived(frame)
        self._flow(cut.flow, frame)
        return self._result

    def take_back(self, cut: Cut, frame: pl.DataFrame) -> Result:
        origin = self._came.origin
        self._result.accounting.add(cut.step, out=frame.height)
        self._came = Originals.resembling(origin, frame)
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
        suspects = Suspects([packet for packet in packets if packet.kind != ROWS])
        table = None if place.before is None else partial(self._table, self._program.operators[name].beside, place.before)
        arrived = Arrived([packet.frame for packet in packets if packet.kind == ROWS], suspects.numbered(), table)
        outcome = place.state.run(arrived, self._time, store)
        self._result.accounting.keep(name, *place.state.size)
        if outcome.counts:
            self._result.accounting.add(name, **outcome.counts)
        if outcome.late is not None:
            for stream, late in suspects.judged(outcome.late):
                self._result.packets += Originals(self._program.origins[stream]).late(name, late, self._time.before, place.shard)
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
        made, _ = self._program.operators[name].made(rows)
        return made

    def _give_out(self, operator: Operator, name: str, results: pl.DataFrame) -> None:
        made, failed = operator.made(results)
        for bad in failed:
            self._fail(name, bad)
            if operator.upserts:
                # What was given out of these keys before does not hold.
                nothing = bad.select(*operator.entry.spec.by, TIME, pl.lit(RETRACT, pl.Int8).alias(OP))
                made = pl.concat([made, nothing], how="diagonal")
        self._flow(operator.flow, made)

    def _fail(self, name: str, bad: pl.DataFrame) -> None:
        """Results that cannot be computed are dead letters of their own, with their key and window: no record is lost with them."""
        # What never held was never given out, so its retraction takes nothing back.
        bad = bad.filter(pl.col(OP) == ADD)
        if bad.is_empty():
            return
        self._result.accounting.add(f"{name}.results", taken=bad.height)
        self._dead(f"{name}.results", bad)

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
        if frame.height:
            self._result.packets.append(Packet(cut.name, self._shard or 0, self._came.beside(frame, places=True)))

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
        if entered.late is not None:
            self._result.packets += self._came.late(name, entered.late, self._time.before, 0)
        if operator.beside:
            self._result.packets.append(Packet(name, self._shard or 0, entered.rows))
            return
        self._result.packets += entry.packets(entered.rows, self._program.shards)
        if entered.suspects is not None:
            self._result.packets += suspected(entry, entered.suspects, self._came, self._program.shards)

    def _send(self, target: str, frame: pl.DataFrame, key: tuple[str, ...]) -> None:
        """Send records to a sink: those of an operator from its own shard, so that each part of a sink has one writer."""
        if not frame.height:
            return
        if self._shard is not None or not key:
            self._result.packets.append(Packet(target, self._shard or 0, frame))
        else:
            self._result.packets += sharded(target, frame, key, self._program.shards)

    def _dead(self, step: str, bad: pl.DataFrame | None) -> None:
        if bad is None or not bad.height:
            return
        if OP in bad.columns:
            # The letter is that of the row when it came; taking back what never went on takes nothing back.
            came = bad.filter(pl.col(OP) == ADD)
            self._result.accounting.add(step, filtered=bad.height - came.height)
            bad = came
        if bad.height:
            self._result.accounting.add(step, dead_letter=bad.height)
            self._result.packets.append(self._came.dead(step, bad))
