"""A chain of steps and its models at work on the same records: what each epoch leaves, side by side."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from headrace.api.declaration import Declaration
from headrace.core.errors import PlanError
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.models.chains import Chain, Flow
from tests.support.models.inputs import SILENCE, Input
from tests.support.models.rows import FOREVER, NEVER, SECOND, Ambiguous, Epoch, Relation, Row

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

Record = dict[str, Any]


class Driver(Protocol):
    """What performs an app: the test driver, or a job."""

    def send(self, stream: str, rows: Sequence[Record]) -> None: ...
    def advance(self, to: datetime) -> None: ...
    def wait(self, time: timedelta) -> None: ...
    def flush(self) -> None: ...
    def end(self) -> None: ...
    def restart(self) -> None: ...
    def rescale(self, shards: int) -> None: ...
    def rows(self, name: str) -> list[Record]: ...
    def accounting(self) -> list[dict[str, Any]]: ...
    @property
    def watermark(self) -> datetime | None: ...


@dataclass
class Story:
    """One run of a chain, or of several that share their first steps, over random records, under disorder, lateness, several partitions,
    restarts and changes of the number of shards."""

    chain: Chain
    seed: int
    others: Sequence[Chain] = ()
    shared: int = 0
    wide: bool = False
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chains = {f"out{number or ''}": chain for number, chain in enumerate((self.chain, *self.others))}

    def run(self) -> str:
        """Compare all views after each epoch: `same`, `refused` where the plan is, or `ambiguous`."""
        chance = random.Random(f"records {self.seed}")
        app = Declaration("chain")
        source = (Input.wide if self.wide else Input.plain)(chance, self.chain.unit)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.declare(app, source)
                # Which of several partitions comes first is not for the models to know.
                partitions = chance.randint(1, 3) if all(chain.in_partitions for chain in self._chains.values()) else 1
                driver = TestDriver(app, shards=chance.randint(1, 3), partitions=partitions)
        except PlanError as error:
            self.told.append(str(error))
            return "refused"
        return self.perform(driver, chance, source)

    def declare(self, app: Declaration, source: Input) -> None:
        """Declare the chains, each with an output of its own."""
        self.told.append(source.words)
        trunk: Any = source.declare(app)
        for link in self.chain.links[: self.shared]:
            trunk = link.declare(trunk)
        for name, chain in self._chains.items():
            results = trunk
            for link in chain.links[self.shared :]:
                results = link.declare(results)
            place = chain.links[-1].behind
            if place.own:
                app.view(name, results)
            else:
                app.sink(results, LogTopic(name, append_only=not place.changing), name=name)

    def perform(self, driver: Driver, chance: random.Random, source: Input) -> str:
        """Have random records come to a driver, and compare what it shows with what the models have."""
        before, used = NEVER, set[int]()
        flows = {name: Flow(chain.links) for name, chain in self._chains.items()}
        epochs = chance.randint(2, 12)
        for number in range(epochs + 1):
            records: list[Record] = []
            what = "records"
            if number == epochs:
                if chance.random() < 0.5:
                    break
                what = "end"
                driver.end()
            else:
                what, records = self._epoch(driver, chance, source, number, used)
            after = FOREVER if what == "end" else max(before, NEVER if driver.watermark is None else _micros(driver.watermark))
            idle = what in ("flush", "silence") and after > before
            self.told.append(f"{what} {[tuple(_plain(record).values()) for record in records]}, watermark {before} to {after}")
            epoch = Epoch([_row(record) for record in records], [], before, after, idle)
            for name, flow in list(flows.items()):
                try:
                    flow.epoch(epoch)
                except Ambiguous:
                    del flows[name]
            if not flows:
                return "ambiguous"
            for name, flow in flows.items():
                self._compare(driver, name, flow.relation)
            before = after
            if chance.random() < 0.25:
                driver.restart()
            if self.wide and chance.random() < 0.1:
                driver.rescale(chance.randint(1, 4))
        if len(flows) == len(self._chains):
            self._compare_lateness(driver)
        return "same"

    def _epoch(self, driver: Driver, chance: random.Random, source: Input, number: int, used: set[int]) -> tuple[str, list[Record]]:
        kind = chance.random()
        if kind < 0.05:
            if source.idle and chance.random() < 0.5:
                driver.wait(timedelta(microseconds=SILENCE * self.chain.unit))
                return "silence", []
            driver.flush()
            return "flush", []
        if kind < 0.2:
            driver.advance(START + timedelta(seconds=(number * 7 + chance.randint(-10, 20)) * self.chain.unit))
            return "advance", []
        records = self._records(chance, number, used)
        # Without a record all streams may be silent, when `advance` has moved the clock.
        if records or not source.idle:
            driver.send(chance.choice(sorted(source.watermarks)), records)
        return "records", records

    def _records(self, chance: random.Random, number: int, used: set[int]) -> list[Record]:
        found = []
        for _ in range(chance.randint(0, 6)):
            second = number * 7 + chance.randint(-25 if chance.random() < 0.3 else -8, 15)
            if any(chain.ordered for chain in self._chains.values()) and second in used:
                continue
            used.add(second)
            key, value = chance.choice(["a", "a", "b", "c", None]), chance.choice([None, -2, 0, 1, 1, 3, 5, 8])
            at = START + timedelta(seconds=second * self.chain.unit)
            found.append({"k": key, "g": chance.choice(["x", "y"]), "v": value, "at": at})
        return found

    def _compare(self, driver: Driver, name: str, wanted: Relation) -> None:
        found = Counter(tuple(sorted(_plain(row).items())) for row in driver.rows(name))
        expected = Counter[Any]()
        for row, count in wanted.items():
            expected[row.cells] += count
        assert found == expected, "\n".join(
            [
                f"seed {self.seed}: {self._chains[name].words} (unit {self.chain.unit})", *self.told,
                "missing:", *(str(dict(row)) for row in (expected - found).elements()),
                "too much:", *(str(dict(row)) for row in (found - expected).elements()),
            ]
        )  # fmt: skip

    def _compare_lateness(self, driver: Driver) -> None:
        counted = [*self.chain.links[: self.shared], *(link for chain in self._chains.values() for link in chain.links[self.shared :])]
        wanted, found = sum(link.model.late for link in counted), sum(step["late"] for step in driver.accounting())
        assert found == wanted, f"seed {self.seed}: {self.chain.words}: late {found}, and should be {wanted}\n" + "\n".join(self.told)


def _row(record: Record) -> Row:
    return Row.of(_micros(record["at"]), **_plain(record))


def _plain(row: Record) -> Record:
    """Times as microseconds."""
    return {name: _micros(value) if isinstance(value, datetime) else value for name, value in row.items()}


def _micros(moment: datetime) -> int:
    return round((moment - _BEGINNING) / timedelta(seconds=1) * SECOND)
