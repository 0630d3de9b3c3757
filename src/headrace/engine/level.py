"""One shard of a level in an epoch: its operators run in order, each with its packets.

An operator that is co-located with another one reads what that has emitted in the same epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.engine.operate import OperatorShard
from headrace.engine.packet import Packet
from headrace.engine.program.program import Program
from headrace.engine.route import Result
from headrace.operators.contract import Stateful
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.store import Store


def operators_of(program: Program, level: int) -> list[str]:
    """The operators of a level, each after the one that it is co-located with."""
    return [name for name, operator in program.operators.items() if operator.level == level]


@dataclass(frozen=True)
class Shard:
    """One shard of all operators of a level: their states, and the store of each."""

    number: int
    states: Mapping[str, Stateful]
    store: Callable[[str], Store]

    def run(self, program: Program, arrived: Callable[[str], list[Packet]], time: EpochTime) -> Result:
        """Take the shard through an epoch; `arrived` has the packets that came for an operator."""
        total = Result()
        for name, state in self.states.items():
            mine = arrived(name) + [packet for packet in total.packets if packet.target == name]
            place = OperatorShard(name, self.number, state, self.states.get(program.operators[name].colocated_with))
            result = program.step(place, mine, time, self.store(name))
            total.packets = [packet for packet in total.packets if packet.target != name] + result.packets
            total.accounting.merge(result.accounting)
        return total
