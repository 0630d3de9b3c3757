"""Random work on a log on a simulated machine, with crashes at any step; every promise of the log is checked.

`python -m headrace.testing.simulation --seed 123` repeats one run and prints each step of it.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from multiprocessing import get_context
from random import Random

from headrace.core.clock import ManualClock
from headrace.testing.actor import HOME, Actor, Epoch, OneLog
from headrace.testing.disk import Crash, Machine, SimulatedDisk
from headrace.testing.inode import Directory
from headrace.testing.ledger import Broken, RunLedger
from headrace.testing.processes import Processes

_FAULTY = {"write": errno.ENOSPC, "sync": errno.EIO, "create": errno.ENOSPC, "truncate": errno.EIO, "rename": errno.EIO}
# About a third of the frequency of each kind of step in a run.
_FREQUENCY = {"lock": 40, "unlock": 40, "write": 12, "sync": 10, "sync_directory": 4, "rename": 3, "truncate": 4, "create": 6}
_MOST_STEPS = 5_000


class Simulation:
    """One run: a few processes work on one log, some are killed, the power is cut, the disk fails; in the end every promise must be
    kept."""

    def __init__(self, seed: int, *, trace: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.clock = ManualClock()
        self.ledger = RunLedger()
        self.machine = Machine(self.random, prepared().copy())
        self.machine.before = self._before
        self.processes = Processes(self.machine, self.random)
        self._switching = self.random.choice((0.0, 0.05, 0.2))
        self.work = self.random.randint(4, 24)
        self.trace = trace
        self._steps = 0
        self._power_lost = False
        self._counts = dict.fromkeys([*_FREQUENCY, "make_directory", "remove"], 0)
        self._kills = {self._somewhere() for _ in range(self.random.choice((0, 1, 1, 2, 3)))}
        self._cuts = {self._somewhere() for _ in range(self.random.choice((0, 1, 1, 2)))}
        self._failing = self.random.choice((0.0, 0.0, 0.01, 0.05))
        self.numbers: Iterator[int] = count()
        self.epochs: dict[tuple[str, int], Epoch] = {}

    def run(self) -> None:
        """Raise if the log broke a promise."""
        while self.work > 0:
            for _ in range(self.random.randint(1, 3)):
                self.processes.start(self._worker)
            self.processes.run()
            self._restart(self._power_lost)
        self._failing, self._kills, self._cuts = 0.0, set(), set()
        self._restart(self.random.random() < 0.5)
        self.processes.start(lambda disk: Actor(self, disk).finish())
        self.processes.run()

    def tell(self, text: str) -> None:
        if self.trace is not None:
            self.trace(f"{self._steps:5} {text}")

    def _somewhere(self) -> tuple[str, int]:
        """A step at which a crash happens: a rare kind is as likely as a frequent one."""
        kind = self.random.choice(list(_FREQUENCY))
        return kind, 1 + int(self.random.expovariate(1 / _FREQUENCY[kind]))

    def _worker(self, disk: SimulatedDisk) -> None:
        actor = Actor(self, disk)
        while self.work > 0:
            self.work -= 1
            actor.act()
        actor.leave()

    def _restart(self, power_cut: bool) -> None:
        if power_cut:
            self.tell("-- the power is cut --")
            self.ledger.power_cut()
            self.machine.cut_power()
        self._power_lost = False

    def _before(self, disk: SimulatedDisk, kind: str) -> None:
        self._steps += 1
        count = self._counts[kind] = self._counts[kind] + 1
        here = (kind, count)
        if self._steps > _MOST_STEPS:
            raise Broken("the run does not come to an end")
        if here in self._cuts:
            self.tell(f"power lost before {kind}")
            self._power_lost = True
            for other in self.processes.others():
                other.alive = False
            disk.alive = False
            raise Crash
        if here in self._kills:
            self.tell(f"killed before {kind}")
            self.processes.kill(disk)
            self.processes.start(self._worker)
            raise Crash
        if kind in _FAULTY and self.random.random() < self._failing:
            self.tell(f"{kind} fails")
            raise OSError(_FAULTY[kind], os.strerror(_FAULTY[kind]))
        if len(self.processes.tasks) > 1 and self.random.random() < self._switching:
            self.processes.pause()


@cache
def prepared() -> Directory:
    """A disk with the topics of a run, all synced; made once, with the log's own code."""
    machine = Machine(Random(0))
    log = OneLog(HOME, disk=machine.process(), clock=ManualClock())
    small = {"segment.bytes": 2048}
    log.create_topic("a", config=small)
    log.create_topic("b", config=small)
    log.create_topic("k", config=small | {"cleanup.policy": "compact"})
    log.transactions.check(1, 1)
    log.alter_topic("__transactions", config=small)
    machine.root.sync_all()
    return machine.root


def failure_of(seed: int) -> str | None:
    """The promise that a run breaks, None if it breaks none."""
    try:
        Simulation(seed).run()
    except Exception:  # noqa: BLE001 - any error that a run does not expect is a finding
        return traceback.format_exc()
    return None


def explore(seeds: range, *, workers: int = 2) -> Iterator[tuple[int, str]]:
    """Run many seeds; yields those that break a promise, and which one."""
    chunks = [seeds[begin : begin + 10] for begin in range(0, len(seeds), 10)]
    with get_context("fork").Pool(workers) as pool:
        for found in pool.imap_unordered(_failures, chunks):
            yield from found


def _failures(seeds: range) -> list[tuple[int, str]]:
    logging.disable(logging.CRITICAL)
    return [(seed, failure) for seed in seeds if (failure := failure_of(seed)) is not None]


def replay(seed: int) -> str:
    """The command that repeats a run."""
    return f"python -m headrace.testing.simulation --seed {seed}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Random work on a log on a simulated machine that crashes.")
    parser.add_argument("--seed", type=int, help="do this run and tell its steps")
    parser.add_argument("--seeds", type=int, default=20_000, help="how many runs to do")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    if chosen.seed is not None:
        logging.basicConfig(level=logging.INFO, format="      %(message)s", stream=sys.stdout)
        Simulation(chosen.seed, trace=print).run()
        print(f"seed {chosen.seed}: every promise was kept")
        return 0
    failed = 0
    for seed, failure in explore(range(chosen.first, chosen.first + chosen.seeds), workers=chosen.workers):
        failed += 1
        print(f"{failure}seed {seed}: {replay(seed)}", flush=True)
    print(f"{chosen.seeds} runs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
