"""The directory of a job: what was fixed when it began, Spark's checkpoint, and the lock that lets only one driver run it."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace.core.errors import JobError
from headrace.core.processes import end_remnants, identity
from headrace.jobs.replacing import replace_text
from headrace.log.disk import PosixLock
from headrace.spark.journal import COMMITS, OFFSETS, entry

_SHARDS_PER_CORE = 2
# The form of the state that operators keep: changed with it, so that no state is taken for what it is not.
_STATE = 4


@dataclass(frozen=True)
class Record:
    """What stays as it is for the life of a job's state: its identity, over how many shards it is spread, and the plan."""

    id: str
    shards: int
    tasks: int
    plan: str
    state: int = 1
    """The form of what its operators keep."""
    cluster: bool = False
    """Whether Spark places its tasks, and for that keeps a record of its own in the checkpoint."""

    def place_of(self, step: str) -> int:
        """Where a step stands in the plan; what the plan does not name comes last."""
        steps = [line.partition(": ")[0] for line in self.plan.splitlines()]
        return steps.index(step) if step in steps else len(steps)


class JobDirectory:
    """Where one job lives, under the home of its app."""

    def __init__(self, home: Path, name: str) -> None:
        self.name = name
        self.path = home / "jobs" / name

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def spark_log(self) -> Path:
        return self.path / "spark.log"

    def record(self) -> Record | None:
        """What was fixed when the job began; None if it never did."""
        file = self.path / "job.json"
        return Record(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None

    def begin(self, plan: str, cores: int, *, cluster: bool = False) -> Record:
        """The record of the job, written now if this is its first run; refused if it is another app, form of state or kind of master."""
        known = self.record()
        if known is None:
            known = Record(f"{self.name}-{secrets.token_hex(6)}", _SHARDS_PER_CORE * cores, cores, plan, _STATE, cluster)
            replace_text(self.path / "job.json", json.dumps(asdict(known), indent=1))
        if known.state != _STATE:
            raise JobError(
                f"the state of job {self.name!r} has form {known.state}, and this version of Headrace reads form {_STATE}",
                hint=f"go on with the version that wrote it, or remove {self.path} and its views to begin anew",
            )
        if known.cluster != cluster:
            places = ["one machine", "a cluster"]
            raise JobError(
                f"job {self.name!r} began on {places[known.cluster]} and cannot go on on {places[cluster]}",
                why="on a cluster Spark's checkpoint says more, without which Spark does not start",
                hint=f"go on with a master of that kind, or remove {self.path} and its views to begin anew",
            )
        if known.plan != plan:
            raise JobError(
                f"app {self.name!r} is not the one that its job was started with:\n{_difference(known.plan, plan)}",
                why="its state was made by the former steps",
                hint=f"give the changed app another name, or remove {self.path} and its views to begin anew",
            )
        return known

    def committed_epoch(self) -> int:
        """The last epoch that is done with, by Spark's own record; 0 before the first."""
        batches = [int(file.name) for file in (self.checkpoint / COMMITS).glob("[0-9]*") if file.name.isdecimal()]
        if not batches:
            return 0
        offset = entry(self.checkpoint, OFFSETS, max(batches)).read_text(encoding="utf-8").splitlines()[-1]
        return int(json.loads(offset)["epoch"])

    def planned(self) -> dict[int, dict[str, Any]]:
        """The offsets of epochs that were planned before a repair went back behind them, by their numbers."""
        file = self.path / "planned.json"
        return {offset["epoch"]: offset for offset in json.loads(file.read_text(encoding="utf-8"))} if file.is_file() else {}

    def plan(self, offsets: Iterable[Mapping[str, Any]]) -> None:
        """Let the coming epochs be these, exactly."""
        replace_text(self.path / "planned.json", json.dumps([dict(offset) for offset in offsets]))

    def next_run(self) -> int:
        """Count a run that begins; only who holds the job may ask."""
        file = self.path / "runs"
        number = int(file.read_text(encoding="ascii")) + 1 if file.is_file() else 1
        replace_text(file, str(number))
        return number

    @contextmanager
    def held(self) -> Iterator[None]:
        """Only one driver at a time runs a job; what a dead one left on this machine is ended."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = PosixLock(self.path / "lock")
        if not lock.acquire(wait=False):
            raise JobError(
                f"job {self.name!r} is running already{_named(self._driver)}",
                why="two drivers would write its checkpoint at once",
                hint="stop that one first, or give this app another name",
            )
        try:
            end_remnants(self._driver)
            self._holder.write_text(identity(os.getpid()), encoding="ascii")
            yield
        finally:
            lock.release()

    def forget_driver(self) -> None:
        """Let nobody know which process ran the job last, as if that was on another machine."""
        self._holder.unlink(missing_ok=True)

    @property
    def _holder(self) -> Path:
        return self.path / "driver"

    @property
    def _driver(self) -> str:
        """The identity of the process that held the job last."""
        return self._holder.read_text(encoding="ascii") if self._holder.is_file() else ""


def _named(driver: str) -> str:
    return f" in process {driver.partition('-')[0]}" if driver else ""


def _difference(before: str, after: str) -> str:
    former, present = before.splitlines(), after.splitlines()
    gone = [f"  - {line}" for line in former if line not in present]
    new = [f"  + {line}" for line in present if line not in former]
    return "\n".join(gone + new)
