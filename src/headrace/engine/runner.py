"""A program in one process, epoch by epoch, with its state in memory: the kernel of the test driver and the Lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

import polars as pl

from headrace.engine.accounting import Accounting
from headrace.engine.evolution.kept_state import without
from headrace.engine.evolution.key_groups import spread
from headrace.engine.level import Shard, operators_of
from headrace.engine.packet import Packet
from headrace.engine.program.program import Program
from headrace.operators.contract import Size
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.store import MemoryStore


class Runner:
    """Runs every level of a program for every shard, and returns what reaches views, sinks, late topics and dead letters."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._levels = [[_fresh(program, level, shard) for shard in range(program.shards)] for level in range(1, program.levels + 1)]

    def epoch(
        self, batches: Mapping[str, pl.DataFrame], time: EpochTime, limits: Mapping[str, int]
    ) -> tuple[dict[str, list[pl.DataFrame]], Accounting]:
        """One epoch: the batches of the sources, then time moves on. Raises if any record is unaccounted for.

        Times of a source above its limit are not believed.
        """
        accounting = Accounting()
        packets: list[Packet] = []
        for source, records in batches.items():
            result = self._program.ingest(source, records, time, limits[source])
            packets += result.packets
            accounting.merge(result.accounting)
        for level in self._levels:
            packets = self._run(level, packets, time, accounting)
        accounting.check()
        reached: dict[str, list[pl.DataFrame]] = {}
        for packet in packets:
            reached.setdefault(packet.target, []).append(packet.frame)
        return reached, accounting

    def restart(self) -> None:
        """Drop everything in memory and continue from the stores, as a job does after a crash."""
        self._levels = [[self._restored(shard) for shard in level] for level in self._levels]

    def moved(self, program: Program, taken: Mapping[str, str], dropped: Mapping[str, Sequence[str]]) -> Runner:
        """A runner of another program, or of another number of shards, with state of this one.

        `taken` maps its operators to those here whose state they keep; `dropped` are the aggregates that are removed from it.
        """
        made = Runner(program)
        for name, former in taken.items():
            before, after = self._shards_of(former), made._shards_of(name)
            parts = spread([shard.states[former] for shard in before], program.operators[name].by, program.shards)
            for shard, part in zip(after, parts, strict=True):
                shard.states[name].absorb(without(part, dropped.get(name, ())), shard.store(name))
        return made

    def _shards_of(self, operator: str) -> list[Shard]:
        return self._levels[self._program.operators[operator].level - 1]

    def sizes(self) -> dict[str, Size]:
        """The state size of each operator, over all shards."""
        total = dict.fromkeys(self._program.operators, Size())
        for shard in chain.from_iterable(self._levels):
            for name, state in shard.states.items():
                total[name] = total[name].plus(state.size)
        return total

    def _run(self, level: list[Shard], packets: list[Packet], time: EpochTime, accounting: Accounting) -> list[Packet]:
        """The records after a level: those that passed it, and those that it emitted."""
        passing = [packet for packet in packets if packet.target not in level[0].states]
        for shard in level:
            result = shard.run(self._program, partial(_mine, packets, shard.number), time)
            passing += result.packets
            accounting.merge(result.accounting)
        return passing

    def _restored(self, shard: Shard) -> Shard:
        states = {name: self._program.operators[name].fresh() for name in shard.states}
        for name, state in states.items():
            state.restore(shard.states[name].manifest(), shard.store(name))
        return Shard(shard.number, states, shard.store)


def _mine(packets: list[Packet], shard: int, operator: str) -> list[Packet]:
    return [packet for packet in packets if packet.target == operator and packet.shard == shard]


def _fresh(program: Program, level: int, number: int) -> Shard:
    states = {name: program.operators[name].fresh() for name in operators_of(program, level)}
    return Shard(number, states, {name: MemoryStore() for name in states}.__getitem__)
