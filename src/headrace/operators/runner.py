"""A program in one process, epoch by epoch, with its state in memory: the kernel of the test driver and the Lab."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from headrace.operators.accounting import Accounting
from headrace.operators.contract import Size, Stateful
from headrace.operators.packet import Packet
from headrace.operators.passage import Place
from headrace.operators.program import Program
from headrace.operators.store import MemoryStore
from headrace.operators.time import EpochTime


class Runner:
    """Runs every level of a program for every shard, and gives back what reaches views, sinks, late topics and dead letters."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._stores: dict[tuple[str, int], MemoryStore] = {}
        self._states: dict[tuple[str, int], Stateful] = {}
        for name, operator in program.operators.items():
            for shard in range(program.shards):
                self._stores[name, shard] = MemoryStore()
                self._states[name, shard] = operator.fresh()

    def epoch(
        self, batches: Mapping[str, pl.DataFrame], time: EpochTime, limits: Mapping[str, int]
    ) -> tuple[dict[str, list[pl.DataFrame]], Accounting]:
        """One epoch: the batches of the sources, then time moves on. Raises if any record is unaccounted for.

        Times of a source that are later than its limit are not believed.
        """
        accounting = Accounting()
        packets: list[Packet] = []
        for source, records in batches.items():
            result = self._program.ingest(source, records, time, limits[source])
            packets += result.packets
            accounting.unite(result.accounting)
        for level in range(1, self._program.levels + 1):
            for name in [name for name, operator in self._program.operators.items() if operator.level == level]:
                packets = self._level(name, packets, time, accounting)
        accounting.check()
        reached: dict[str, list[pl.DataFrame]] = {}
        for packet in packets:
            reached.setdefault(packet.target, []).append(packet.frame)
        return reached, accounting

    def restart(self) -> None:
        """Forget everything in memory and go on from the stores, as a job does after a crash."""
        for (name, shard), state in self._states.items():
            fresh = self._program.operators[name].fresh()
            fresh.restore(state.manifest(), self._stores[name, shard])
            self._states[name, shard] = fresh

    def sizes(self) -> dict[str, Size]:
        """How large the state of each operator is, over all shards."""
        total = dict.fromkeys(self._program.operators, Size())
        for (name, _), state in self._states.items():
            total[name] = total[name].plus(state.size)
        return total

    def _level(self, name: str, packets: list[Packet], time: EpochTime, accounting: Accounting) -> list[Packet]:
        rest = [packet for packet in packets if packet.target != name]
        for shard in range(self._program.shards):
            mine = [packet for packet in packets if packet.target == name and packet.shard == shard]
            before = self._states.get((self._program.operators[name].beside, shard))
            place = Place(name, shard, self._states[name, shard], before)
            result = self._program.step(place, mine, time, self._stores[name, shard])
            rest += result.packets
            accounting.unite(result.accounting)
        return rest
