"""A job that is killed with -9 while its app changes: in an epoch of the former version, while it changes, and in one of the new."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

import headrace as hr
from headrace.jobs.directory import JobDirectory
from headrace.jobs.evolution.takeover import rescale
from headrace.plan.evolution.comparison import REFUSED
from headrace.testing.faults import recorded
from tests.support.evolving import Spec, drawn, edited, records
from tests.support.evolving_job import NAME, EvolvingJob
from tests.support.examples import seeds, soaked
from tests.support.marked import MARK, kill, wait_until_gone
from tests.support.processes import PATIENCE

ROOT = Path(__file__).parents[2]
APP = """
import headrace as hr
from tests.support.evolving import Out, Spec, Step

app = {spec!r}.declare(hr.App({name!r}, home={home!r}))
"""
IN_AN_EPOCH = (
    "source.plan.after", "source.read.after", "state.change.after", "sink.write.after", "sink.accounting.after", "loop.commit.before",
    "loop.commit.after",
)  # fmt: skip
IN_A_CHANGE = ("evolution.record.before", "evolution.record.after", "job.start.before")


class Job(EvolvingJob):
    """A job that is killed in a process of its own, and that comes to the end of what was sent in this one."""

    def __init__(self, directory: Path, spec: Spec) -> None:
        super().__init__(directory / "home", spec)
        self._directory = directory

    def run_killed(self, failpoint: str, *options: str) -> bool:
        """Run it until a process of it comes to a failpoint, and kill them all; False if it ended before."""
        mark, passed = uuid.uuid4().hex, self._directory / f"{uuid.uuid4().hex}.passed"
        environment = {**os.environ, MARK: mark, "HEADRACE_FAILPOINTS": f"{failpoint}=stop({passed})"}
        file = self._directory / "app.py"
        file.write_text(APP.format(spec=self.spec, name=NAME, home=str(self.home)))
        command = [sys.executable, "-m", "headrace", "run", str(file), "--until", "caught-up", *options]
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                deadline = time.monotonic() + 2 * PATIENCE
                while process.poll() is None and not recorded(passed):
                    assert time.monotonic() < deadline, failpoint
                    time.sleep(0.05)
            finally:
                kill(mark)
            assert process.wait() in (0, -9), process.stderr and process.stderr.read()
        wait_until_gone(mark)
        return bool(recorded(passed))

    def rescale(self, chance: random.Random) -> None:
        """Another number of shards and tasks."""
        place = JobDirectory(self.home, NAME)
        record = place.record()
        assert record is not None
        tasks = record.partitions * chance.choice([1, 2])
        with place.held():
            rescale(self.spec.app().plan(), place, shards=tasks * chance.choice([1, 3]), tasks=tasks)


@pytest.mark.timeout(600)  # two starts of Spark besides the warm one, four in the long form
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("seed", seeds(soaked(20, 4)))
def test_a_job_killed_while_its_app_changes_has_the_views_of_a_run_from_the_beginning(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    job = Job(tmp_path, drawn(chance))
    job.send(records(chance, 0))
    job.app.run(until="caught-up")
    killed = 0
    for number in range(soaked(2, 1)):
        job.send(records(chance, number + 1))
        killed += job.run_killed(chance.choice(IN_AN_EPOCH))
        if chance.random() < 0.5:
            job.rescale(chance)
        edit = edited(job.spec, chance, number)
        if job.changes(edit.spec).status == REFUSED:
            with pytest.raises(hr.JobError, match="rebuild"):
                edit.spec.declare(hr.App(NAME, home=job.home)).run(until="caught-up", accept=True)
        else:
            job.accept(edit.spec)
            killed += job.run_killed(chance.choice(IN_A_CHANGE + IN_AN_EPOCH), "--accept")
        job.app.run(until="caught-up", accept=True)
        job.check()
    assert killed
