"""A campaign of faults against one job, and the verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from headrace.app import App
from headrace.core.errors import JobError
from headrace.engine.accounting import ENDS, REASONS
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.accounting import JobAccounting
from headrace.testing.chaos import kinds
from headrace.testing.chaos.comparison import Difference, differences
from headrace.testing.chaos.generator import Generator
from headrace.testing.chaos.kinds import ChaosFault, drawn
from headrace.testing.chaos.oracle import PlannedEpochs, check_that_it_can_be_replayed, replayed, taken
from headrace.testing.chaos.subject import ChaosSubject, wake

_LOOK = 0.1
_PATIENCE = 180.0
_UNREACHED = 8
_LONGEST_PAUSE = 4.0
_MOST_STUMBLES = 3
_LAST_EPOCHS = 20

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Campaign:
    """The plan of a campaign: its end, its kinds of faults, and the rate of records."""

    seed: int
    faults: int | None = None
    seconds: float | None = None
    kinds: tuple[str, ...] = tuple(kinds.KINDS)
    rate: int = 500
    rows_per_epoch: int = 1_000

    def over(self, done: int, began: float) -> bool:
        enough = self.faults is not None and done >= self.faults
        return enough or (self.seconds is not None and time.monotonic() - began >= self.seconds)


@dataclass
class Verdict:
    """The outcome of a campaign."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    epochs: int = 0
    sent: dict[str, int] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    longest: float = 0.0
    """The longest time from a fault to the next epoch that was done with, in seconds."""
    stopped_in: float | None = None
    """How long the job took to end when it was asked to."""
    accounting: list[dict[str, Any]] = field(default_factory=list)
    wrong_accounts: list[str] = field(default_factory=list)
    outputs: list[Difference] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        return self.sent == self.taken and not self.wrong_accounts and all(output.whole for output in self.outputs)

    @property
    def lost(self) -> int:
        return sum(output.lost for output in self.outputs)

    @property
    def duplicated(self) -> int:
        return sum(output.duplicated for output in self.outputs)

    def __str__(self) -> str:
        kinds_of = ", ".join(f"{kind} {count}" for kind, count in self.faults.items())
        stopped = f", stopped within {self.stopped_in:.1f} s" if self.stopped_in is not None else ""
        lines = [
            f"{self.faults.total()} faults ({kinds_of}), {sum(self.sent.values()):,} records, {self.epochs:,} epochs, seed {self.seed}",
            f"longest time from a fault to the next epoch {self.longest:.1f} s{stopped}",
            *(f"stream {name!r}: {count:,} records sent, {self.taken.get(name, 0):,} taken in" for name, count in self.sent.items()),
            *map(_account, self.accounting),
            *self.wrong_accounts,
            f"lost {self.lost:,}, duplicated {self.duplicated:,}",
        ]
        return "\n".join(lines)


class Chaos:
    """Runs a campaign against the app of a file, declared on a separate home in `place`."""

    def __init__(self, app: App, file: str, place: Path, campaign: Campaign, tell: Tell) -> None:
        self._app, self._campaign, self._tell = app, campaign, tell
        self._plan = check_that_it_can_be_replayed(app)
        self._directory = JobDirectory(place, app.name)
        self._planned = PlannedEpochs(self._directory.checkpoint)
        self._subject = ChaosSubject(file, place)
        self._faults, self._random = drawn(campaign.kinds, campaign.seed), Random(campaign.seed)
        self._frozen: set[int] = set()
        self._verdict = Verdict(campaign.seed)

    def run(self) -> Verdict:
        """Run the campaign, let the job finish, and compare."""
        generator = Generator(self._app.log, self._plan.sources, self._campaign.rate, self._campaign.seed)
        generator.start()
        try:
            self._disturb()
            generator.stop()
            self._verdict.sent = dict(generator.sent)
            self._finish()
        finally:
            self._subject.close()
        self._compare()
        return self._verdict

    def _disturb(self) -> None:
        began = time.monotonic()
        while not self._campaign.over(self._verdict.faults.total(), began):
            fault = next(self._faults)
            self._tell(f"{timedelta(seconds=int(time.monotonic() - began))}  {self._verdict.faults.total() + 1}. {fault}: {fault.meaning}")
            self._happen(fault)
            self._verdict.faults[fault.kind] += 1

    def _happen(self, fault: ChaosFault) -> None:
        if fault.kind == kinds.FAILPOINT:
            self._subject.kill()
            self._start(fault.rules)
            self._wait_for_end()
            return
        self._progress()
        match fault.kind:
            case kinds.DRIVER:
                self._subject.kill_driver()
            case kinds.EVERYTHING:
                self._subject.kill()
            case kinds.WORKER:
                self._subject.kill_worker(self._random)
            case kinds.PAUSE:
                self._subject.pause(self._random.uniform(1, _LONGEST_PAUSE))
            case kinds.REPLACED:
                self._frozen |= self._subject.freeze_spark()
                # As on another machine: on its own machine, the new run would end them.
                self._directory.forget_driver()

    def _progress(self) -> None:
        """Wait until an epoch is complete; a run that has ended is followed by another. Then wait a moment more, into the next epoch."""
        before, began, stumbles = self._directory.committed_epoch(), time.monotonic(), 0
        while self._directory.committed_epoch() == before:
            if not self._subject.running:
                stumbles += 1
                self._restart(stumbles, began)
            self._look(began)
        self._verdict.longest = max(self._verdict.longest, time.monotonic() - began)
        if self._frozen:
            wake(self._frozen)
            self._frozen = set()
        self._pass(self._random.random())

    def _restart(self, stumbles: int, began: float) -> None:
        # A run may fail on the leftovers of the previous one: the next one continues.
        if stumbles > _MOST_STUMBLES or time.monotonic() - began > _PATIENCE:
            raise JobError(f"the job does not continue after a fault (seed {self._campaign.seed}); it said:\n{self._subject.said()}")
        self._start()

    def _start(self, rules: str | None = None) -> None:
        self._subject.start(rules, "--rows-per-epoch", str(self._campaign.rows_per_epoch))

    def _wait_for_end(self) -> None:
        """Wait for a failpoint to end the run; a failpoint that the job does not reach within some epochs is given up."""
        began, before = time.monotonic(), self._directory.committed_epoch()
        while self._subject.running and self._directory.committed_epoch() < before + _UNREACHED:
            self._look(began)

    def _look(self, began: float) -> None:
        self._pass(_LOOK)
        if time.monotonic() - began > _PATIENCE:
            raise JobError(
                f"no epoch was done within {_PATIENCE:g} s of a fault (seed {self._campaign.seed}); it said:\n{self._subject.said()}"
            )

    def _pass(self, seconds: float) -> None:
        time.sleep(seconds)
        self._planned.look()

    def _finish(self) -> None:
        """End the present run normally, and take in the remaining records and close every window in one more run."""
        self._tell("no more faults: the job processes the remaining records and closes every window")
        if self._subject.running or self._frozen:
            self._progress()
        if self._subject.running:
            self._verdict.stopped_in = self._subject.stop()
        # The backlog of a job that was down is processed in fewer and larger epochs.
        self._subject.start(None, "--until", "end", "--rows-per-epoch", str(_LAST_EPOCHS * self._campaign.rows_per_epoch))
        began, before = time.monotonic(), self._directory.committed_epoch()
        while self._subject.running:
            self._look(began)
            if (now := self._directory.committed_epoch()) > before:
                began, before = time.monotonic(), now
        if self._subject.code:
            raise JobError(f"the last run ended with code {self._subject.code}; it said:\n{self._subject.said()}")
        self._planned.look()

    def _compare(self) -> None:
        record = self._directory.record()
        assert record is not None
        self._tell("its results are compared with those of the same epochs in one process without faults")
        verdict, expected = self._verdict, replayed(self._app, record.shards, self._planned)
        verdict.epochs = len(list(self._planned))
        verdict.taken = taken(self._planned, self._plan.sources)
        verdict.accounting = JobAccounting(self._app.log, self._app.name, record, self._directory.accounting).totals()
        verdict.wrong_accounts = _wrong(verdict.accounting, expected.accounting())
        verdict.outputs = list(differences(self._app, expected))


def _account(row: dict[str, Any]) -> str:
    """
    >>> _account({"step": "clicks", "in": 1000, "out": 990, "late": 10, "duplicate": 0, "filtered": 0, "dead_letter": 0})
    "step 'clicks': 1,000 in = 990 out + 10 late"
    """
    ends = [f"{row[end]:,} {end.replace('_', ' ')}" for end in ENDS if row[end]]
    return f"step {row['step']!r}: {row['in']:,} in = {' + '.join(ends) or 0}"


def _wrong(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> list[str]:
    """Steps whose counts do not add up, or differ from the expected ones; the first reasons are not counts.

    >>> row = {"step": "clicks", "in": 1, "out": 1, "late": 0, "duplicate": 0, "filtered": 0, "dead_letter": 0}
    >>> _wrong([{**row, "late_reason": None}], [row]), len(_wrong([row], [{**row, "in": 2, "out": 2}]))
    ([], 1)
    """
    wanted, counted = _counts(expected), _counts(found)
    open_ends = [
        f"step {row['step']!r}: {row['in']:,} in, {sum(row[end] for end in ENDS):,} came of them"
        for row in found if row["in"] != sum(row[end] for end in ENDS)
    ]  # fmt: skip
    return open_ends + [
        f"step {step!r}: counted {counted.get(step)}, expected {wanted.get(step)}"
        for step in sorted(wanted.keys() | counted.keys())
        if wanted.get(step) != counted.get(step)
    ]


def _counts(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["step"]: {name: value for name, value in row.items() if name not in REASONS} for row in rows if row["in"]}
