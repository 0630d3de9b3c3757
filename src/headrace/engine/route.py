"""Routing of records in one stage of an epoch: through stateless steps, into operators, to sinks and side topics.

Every record is counted where it goes, so that the accounting of each step adds up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from headrace.engine.accounting import Accounting
from headrace.engine.hot_keys import sampled
from headrace.engine.packet import Exit, Packet, placed, sharded
from headrace.engine.partition_shards import shards_of_partitions
from headrace.engine.program.flow import Flow
from headrace.engine.program.spark_step import SparkStep
from headrace.engine.provenance import Provenance
from headrace.engine.side_topics import why_late
from headrace.engine.suspects import suspected
from headrace.operators.changes import ADD, OP, TIME
from headrace.operators.contract import ONLY
from headrace.operators.event_time.epoch_time import BEGINNING, END, EpochTime
from headrace.operators.expressions import REASON
from headrace.operators.frames import columns_of
from headrace.plan.topics import hot_topic

if TYPE_CHECKING:
    from headrace.engine.program.program import Outlet, Program

_FEW = 10_000


@dataclass
class Result:
    """The packets and counts of a stage in an epoch."""

    packets: list[Packet] = field(default_factory=list)
    accounting: Accounting = field(default_factory=Accounting)


class Router:
    """One stage of one epoch: of a source, or of one shard of what follows an operator."""

    def __init__(self, program: Program, time: EpochTime, origin: str, shard: int | None = None) -> None:
        self.program = program
        self.time = time
        self.shard = shard
        self.came = Provenance(program.origins[origin])
        self.result = Result()

    def flow(self, flow: Flow, frame: pl.DataFrame) -> None:
        """Send records through stateless steps, and to what follows them."""
        for step in flow.steps:
            taken = frame.height
            if not taken:
                # To ask polars about no rows takes as long as about a few.
                self.result.accounting.add(step.name)
                continue
            outcome = step.run(frame, self.time)
            frame = outcome.frame
            bad = 0 if outcome.bad is None else outcome.bad.height
            # An array makes several records of one: the ones that continue are counted where they go.
            out = taken - outcome.filtered - bad
            self.result.accounting.add(step.name, taken=taken, out=out, filtered=outcome.filtered)
            if outcome.scored is not None:
                self.result.accounting.scored(step.name, *outcome.scored)
            self.dead(step.name, outcome.bad)
        for exit_ in flow.exits:
            self._exit(exit_, frame)
        for branch in flow.branches:
            self.flow(branch, frame)

    def _leave(self, cut: SparkStep, frame: pl.DataFrame) -> None:
        """Send records to a step of Spark's, with their originals."""
        if cut.transforms:
            self.result.accounting.add(cut.step, taken=frame.height)
        if not frame.height:
            return
        if not cut.transforms:
            self.result.packets.append(Packet(cut.name, self.shard or 0, self.came.with_originals(frame, places=True)))
            return
        # Slices for several tasks: if there are few records, one task alone is quicker.
        size = max(_FEW, -(-frame.height // self.program.shards))
        slices = frame.select_seq(cut.columns.names).iter_slices(size)
        self.result.packets += [Packet(cut.name, shard, part) for shard, part in enumerate(slices) if part.height]

    def _exit(self, exit_: Exit, frame: pl.DataFrame) -> None:
        name = exit_.target
        if name in self.program.cuts:
            self._leave(self.program.cuts[name], frame)
            return
        if not frame.height:
            self.result.accounting.add(name)
            return
        if name in self.program.outlets:
            outlet = self.program.outlets[name]
            self.result.accounting.add(name, taken=frame.height, out=frame.height)
            wanted = [column for column in (*outlet.columns, TIME, OP) if column in frame.columns]
            partitions = None if self.shard is not None or outlet.key else self.came.partitions(frame)
            self._send(outlet, columns_of(frame, wanted), partitions)
            return
        self._enter(exit_, frame)

    def _enter(self, exit_: Exit, frame: pl.DataFrame) -> None:
        name = exit_.target
        operator = self.program.operators[name]
        entry = operator.entries[exit_.port]
        hot = None if operator.colocated_with or entry.port.broadcast else sampled(frame, entry.by, self.time.epoch)
        if hot is not None:
            seen = hot.with_columns_seq(pl.lit(name).alias("step"), pl.lit(operator.gathers).alias("gathers"))
            self.result.packets.append(Packet(hot_topic(self.program.name), 0, seen))
        entered = entry.enter(frame, self.time)
        late = 0 if entered.late is None else entered.late.height
        bad = 0 if entered.bad is None else entered.bad.height
        self.result.accounting.add(name, taken=entered.accepted + late + bad, out=entered.accepted, late=late)
        self.result.accounting.add(name, partly_late=entered.partly_late)
        self.dead(name, entered.bad)
        if entered.late is not None:
            self.result.accounting.explain(name, late_reason=why_late(entered.late.head(1), self.time.before).item())
            for packet in self.came.late(name, entered.late, self.time.before, 0):
                self.put_aside(name, packet)
        if operator.colocated_with:
            self.result.packets.append(Packet(name, self.shard or 0, entered.rows, port=exit_.port))
            return
        self.result.packets += entry.packets(entered.rows, self.program.shards)
        if entered.suspects is not None:
            assert exit_.port == ONLY, f"{name} has suspects at a named port"
            self.result.packets += suspected(entry, entered.suspects, self.came, self.program.shards)

    def _send(self, outlet: Outlet, frame: pl.DataFrame, partitions: pl.Series | None) -> None:
        """Send records to a sink: those of an operator from its own shard, so that each part of a sink has one writer.

        Records that no operator has seen are distributed by the key of the sink. Without a key they are distributed by the partition of
        their source, which keeps them in its order. The same record always has the same writer, otherwise a repeated epoch would not be
        recognized. This is not certain for rows that a function of the user made, so these have one writer.
        """
        if self.shard is None and outlet.key:
            self.result.packets += sharded(Exit(outlet.name), frame, outlet.key, self.program.shards)
        elif self.shard is None and partitions is not None:
            places = shards_of_partitions(self.came.origin.name, partitions, self.program.shards)
            self.result.packets += placed(Exit(outlet.name), frame, places, self.program.shards)
        else:
            self.result.packets.append(Packet(outlet.name, self.shard or 0, frame))

    def dead(self, step: str, bad: pl.DataFrame | None) -> None:
        """Send records that a step could not process to the dead letters."""
        if bad is None or not bad.height:
            return
        if OP in bad.columns:
            # The letter is that of the row when it arrived; retracting what was never emitted has no effect.
            came = bad.filter(pl.col(OP) == ADD)
            self.result.accounting.add(step, filtered=bad.height - came.height)
            bad = came
        if bad.height:
            self.result.accounting.add(step, dead_letter=bad.height)
            self.result.accounting.explain(step, dead_letter_reason=bad.item(0, REASON))
            self.put_aside(step, self.came.dead(step, bad))

    def put_aside(self, step: str, packet: Packet) -> None:
        """Send late records or dead letters of a step to their topic, and through the steps that read them as a stream."""
        self.result.packets.append(packet)
        side = self.program.side_streams.get(packet.target)
        # When the input has ended, these streams have ended, too. What is late or bad after one of them is not fed to it again.
        if side is None or self.time.before >= END or self._is_beyond_side_streams(step):
            return
        origin, rows = self.program.origins[side.origin], packet.frame.height
        moment = self.time.before if self.time.before > BEGINNING else self.time.clock
        self.result.accounting.add(packet.target, taken=rows, out=rows)
        behind = Router(self.program, self.time, origin.name)
        behind.result = self.result
        time = pl.lit(None if origin.time is None else moment, pl.Int64).alias(TIME)
        behind.flow(side.flow, packet.frame.select_seq(*side.columns, time))

    def _is_beyond_side_streams(self, step: str) -> bool:
        """Whether a step, or the one whose results or timers it stands for, reads late records or dead letters."""
        return any(step == name or step.startswith(f"{name}.") for name in self.program.beyond_side_streams)
