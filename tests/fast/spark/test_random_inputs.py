"""Random runs of a job over topics with transactions, partitions that are added, and compaction: nothing is lost, nothing comes twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headrace.core.clock import ManualClock
from headrace.jobs.directory import JobDirectory
from headrace.jobs.start.compaction_hold import Holding
from headrace.testing.conformance.reading import Batches
from tests.support.examples import seeds, soaked
from tests.support.in_process import InProcess
from tests.support.random_inputs import TOPICS, World

GROUPS, RUNS, STEPS = 8, soaked(25, 10), 30


class Run:
    """A job that is killed now and then, before or amid an epoch, and holds what it may read again."""

    def __init__(self, home: Path, seed: int) -> None:
        self.world = World(home, seed)
        self.chance = self.world.chance
        place = JobDirectory(home, "random")
        place.path.mkdir(parents=True)
        place.fix(place.begin("plan", 1))
        self.holding = Holding(place, self.world.log, TOPICS)
        self.holding.begin()
        self.job = InProcess(self.world.app, ManualClock())

    def epoch(self) -> None:
        end = self.job.plan(rows=self.chance.choice([None, 3, 7]))
        if end is None:
            return
        batches = self.job.read(end)
        while self.chance.random() < 0.4:
            self.job.restart()
            for _ in range(self.chance.randrange(6)):
                self.world.disturb()
            assert _numbers(self.job.read(end)) == _numbers(batches), "a second attempt reads other records"
        self.job.take_in(end, batches)
        if self.chance.random() < 0.5:
            # The state is synced: nothing goes back behind this epoch.
            self.holding.move(self.job.reached)

    def go(self) -> None:
        for _ in range(STEPS):
            self.world.disturb()
            if self.chance.random() < 0.5:
                self.epoch()
            elif self.chance.random() < 0.2:
                self.job.restart()
        self.world.settle()
        self.job.restart(until="end")
        self.job.catch_up()

    def check(self) -> None:
        for topic in TOPICS:
            kept = Counter(row["n"] for row in self.job.driver.rows(f"{topic}.sink"))
            assert kept == self.world.expected(topic)
            counted = {row["window_start"]: row["records"] for row in self.job.driver.rows(f"{topic}_per_minute")}
            assert counted == self.world.per_minute(topic)
            assert self.job.driver.late(topic) == []


def _numbers(batches: Batches) -> dict[str, list[int]]:
    return {name: [n for batch in found for n in batch.column("n").to_pylist()] for name, found in batches.items()}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("group", range(GROUPS))
def test_every_committed_record_is_taken_in_once_whatever_happens_to_its_topic(group: int, tmp_path: Path) -> None:
    for seed in seeds(RUNS, group):
        run = Run(tmp_path / str(seed), seed)
        try:
            run.go()
            run.check()
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        run.world.log.close()
