"""The directory of a job: what was fixed when it began, Spark's checkpoint, and the lock that lets only one driver run it."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.checkpoint.epoch_files import stored_plan
from headrace.checkpoint.journal import COMMITS, OFFSETS, batches, entry
from headrace.core.columns.keys import KEY_GROUPS
from headrace.core.errors import JobError
from headrace.core.files.disk import PosixLock, locked
from headrace.core.files.replacing import replace_text
from headrace.core.processes import end_remnants, identity
from headrace.engine.planning.epoch_plan import EpochPlan

_SHARDS_PER_CORE = 1
_TRIES, _PAUSE = 5, 0.02
# The form of operators' state and of offsets: changed with them, so that nothing is read in a wrong form.
_STATE = 6


@dataclass(frozen=True)
class Record:
    """The fixed properties of a job's state: its identity, its number of shards, and the plan."""

    id: str
    shards: int
    tasks: int
    plan: str
    state: int = 1
    """The form of what its operators keep."""
    cluster: bool = False
    """Whether Spark places its tasks, and for that keeps a record of its own in the checkpoint."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """The topics that it writes to, and what each is for: `view`, `sink` or `side`."""
    described: Mapping[str, Any] = field(default_factory=dict)
    """The fingerprints of its steps and outputs (`plan/evolution/described.py`)."""
    steps: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Where the state of each step is: its directory, its level and its fingerprint."""
    levels: int = 0
    layout: int = 0
    """How often an accepted change, or another number of shards, has laid out the state again."""
    changed_at: int = 0
    """The epoch as of which that was done last."""
    begins: Mapping[str, int] = field(default_factory=dict)
    """The first epoch of outputs that begin with a snapshot."""
    emptied: Sequence[str] = field(default_factory=list)
    """Views whose topics are created again before the next epoch."""
    partitions: int = 0
    """The number of tasks that it began with: as many partitions have its views."""
    key_groups: int = KEY_GROUPS

    def place_of(self, step: str) -> int:
        """The place of a step in the plan; steps that the plan does not name come last."""
        steps = [line.partition(": ")[0] for line in self.plan.splitlines()]
        return steps.index(step) if step in steps else len(steps)


class JobDirectory:
    """The directory of one job, under the home of its app."""

    def __init__(self, home: Path, name: str) -> None:
        self.name = name
        self.path = home / "jobs" / name

    def sibling(self, name: str) -> JobDirectory:
        """The directory of another job of the same home."""
        return JobDirectory(self.path.parent.parent, name)

    def others(self) -> Iterator[JobDirectory]:
        """The other jobs of the same home."""
        found = sorted(self.path.parent.glob("*/job.json"))
        return (self.sibling(file.parent.name) for file in found if file.parent.name != self.name)

    def kinds(self) -> Mapping[str, str]:
        """The topics that the job writes to, and the purpose of each."""
        record = self.record()
        return {} if record is None else record.topics

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def accounting(self) -> Path:
        """The sums of the finished epochs' accounting."""
        return self.path / "accounting.json"

    @property
    def spark_log(self) -> Path:
        return self.path / "spark.log"

    @property
    def own_log(self) -> Path:
        return self.path / "headrace.log"

    @property
    def record_file(self) -> Path:
        """It exists as long as the job does."""
        return self.path / "job.json"

    def record(self) -> Record | None:
        """The properties that were fixed when the job began; None if it never did."""
        file = self.record_file
        return Record(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None

    def begin(self, plan: str, cores: int, *, cluster: bool = False, topics: Mapping[str, str] | None = None) -> Record:
        """The record of the job, new if this is its first run; refused if it has another form of state or kind of master."""
        known = self.record()
        if known is None:
            made = Record(f"{self.name}-{secrets.token_hex(6)}", _SHARDS_PER_CORE * cores, cores, plan, _STATE, cluster, topics or {})
            return replace(made, partitions=cores)
        self.check(known)
        if known.cluster != cluster:
            places = ["one machine", "a cluster"]
            raise JobError(
                f"job {self.name!r} began on {places[known.cluster]} and cannot continue on {places[cluster]}",
                why="on a cluster Spark's checkpoint says more, without which Spark does not start",
                hint="continue with a master of that kind, or start from the beginning: headrace reset app.py",
            )
        return known

    def fix(self, record: Record) -> None:
        """Write the record of a first run: from here on the job belongs to this app, with this number of shards."""
        if self.record() is None:
            replace_text(self.record_file, json.dumps(asdict(record), indent=1))

    def unfix(self) -> None:
        """Remove the record of a first run that Spark refused before it did anything."""
        self.record_file.unlink(missing_ok=True)

    def replace(self, record: Record) -> None:
        """Let the job be another version of its app, or have its state elsewhere: from here on it is so."""
        replace_text(self.record_file, json.dumps(asdict(record), indent=1))

    def check(self, known: Record) -> None:
        """Raise if the state of the job has another form than this version of Headrace reads."""
        if known.state != _STATE or known.key_groups != KEY_GROUPS:
            raise JobError(
                f"the state of job {self.name!r} has form {known.state}, and this version of Headrace reads form {_STATE}",
                hint="continue with the version that wrote it, or start from the beginning: headrace reset app.py",
            )

    def committed_epoch(self) -> int:
        """The last finished epoch, by Spark's own record; 0 before the first."""
        plan = self.committed_plan()
        return 0 if plan is None else plan.epoch

    def committed_plan(self) -> EpochPlan | None:
        """The plan of the last committed epoch; None before the first."""
        last = max(batches(self.checkpoint, COMMITS), default=None)
        return None if last is None else stored_plan(entry(self.checkpoint, OFFSETS, last))

    def running(self) -> bool:
        """Whether a driver runs the job now: a live one has its lock, whatever the files say."""
        return locked(self.path / "lock")

    def planned(self) -> dict[int, EpochPlan]:
        """The epochs that were planned before a repair went back behind them, by their numbers."""
        file = self.path / "planned.json"
        plans = map(EpochPlan.from_json, json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else ()
        return {plan.epoch: plan for plan in plans}

    def plan(self, plans: Iterable[EpochPlan]) -> None:
        """Make these exactly the next epochs."""
        replace_text(self.path / "planned.json", json.dumps([plan.to_json() for plan in plans]))

    def next_run(self) -> int:
        """Count a run that begins; only the holder of the job may call this."""
        file = self.path / "runs"
        number = int(file.read_text(encoding="ascii")) + 1 if file.is_file() else 1
        replace_text(file, str(number))
        return number

    @contextmanager
    def held(self) -> Iterator[None]:
        """Only one driver at a time runs a job; the remaining processes of a dead one on this machine are ended."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = PosixLock(self.path / "lock")
        if not _acquired(lock):
            raise JobError(
                f"job {self.name!r} is running already{_named(self.driver)}",
                why="two drivers would write its checkpoint at once",
                hint="stop that one first, or give this app another name",
            )
        try:
            end_remnants(self.driver)
            self._holder.write_text(identity(os.getpid()), encoding="ascii")
            yield
        finally:
            lock.release()

    def forget_driver(self) -> None:
        """Forget which process ran the job last, as if that was on another machine."""
        self._holder.unlink(missing_ok=True)

    @property
    def _holder(self) -> Path:
        return self.path / "driver"

    @property
    def driver(self) -> str:
        """The identity of the process that held the job last."""
        return self._holder.read_text(encoding="ascii") if self._holder.is_file() else ""


def _acquired(lock: PosixLock) -> bool:
    """Take the lock of a job; a process that checks the lock has it for a moment, too."""
    for _ in range(_TRIES):
        if lock.acquire(wait=False):
            return True
        time.sleep(_PAUSE)
    return False


def _named(driver: str) -> str:
    return f" in process {driver.partition('-')[0]}" if driver else ""
