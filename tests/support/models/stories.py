"""A chain of steps and its models at work on the same records: what each epoch leaves, side by side."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, perfect
from headrace.core.errors import PlanError
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.models.chains import Chain
from tests.support.models.keyed import Positive
from tests.support.models.rows import FOREVER, NEVER, SECOND, Ambiguous, Epoch, Relation, Row, difference

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

Record = dict[str, Any]


@dataclass
class Story:
    """One run of a chain over random records, under disorder, lateness, several partitions and restarts."""

    chain: Chain
    seed: int
    told: list[str] = field(default_factory=list)

    def run(self) -> str:
        """Compare all views after each epoch: `same`, `refused` where the plan is, or `ambiguous`."""
        chance = random.Random(f"records {self.seed}")
        app, unit = Declaration("chain"), self.chain.unit
        bound = chance.choice([0, 0, 5, 8])
        watermark = bounded(f"{bound * unit} seconds") if bound else perfect()
        stream = app.stream("s", "k string, g string, v int, at timestamp", key="k", time="at", watermark=watermark)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._output(app, self.chain.declare(stream))
                # Which of several partitions comes first is not for the models to know.
                partitions = chance.randint(1, 3) if self.chain.in_partitions else 1
                driver = TestDriver(app, shards=chance.randint(1, 3), partitions=partitions)
        except PlanError as error:
            self.told.append(str(error))
            return "refused"
        return self._told(driver, chance)

    def _output(self, app: Declaration, results: Any) -> None:
        place = self.chain.links[-1].behind
        if place.own:
            app.view("out", results)
        else:
            app.sink(results, LogTopic("out", append_only=not place.changing), name="out")

    def _told(self, driver: TestDriver, chance: random.Random) -> str:
        before, relations, used = NEVER, [Counter[Row]() for _ in self.chain.links], set[int]()
        epochs = chance.randint(2, 12)
        for number in range(epochs + 1):
            records: list[Record] = []
            kind = 1.0
            if number == epochs:
                if chance.random() < 0.5:
                    break
                driver.end()
                after = FOREVER
            else:
                kind = chance.random()
                if kind < 0.05:
                    driver.flush()
                elif kind < 0.2:
                    driver.advance(START + timedelta(seconds=(number * 7 + chance.randint(-10, 20)) * self.chain.unit))
                else:
                    records = self._records(chance, number, used)
                    driver.send("s", records)
                after = max(before, NEVER if driver.watermark is None else _micros(driver.watermark))
            idle = kind < 0.05 and after > before
            self.told.append(
                f"{'flush ' if kind < 0.05 else ''}{[tuple(_plain(record).values()) for record in records]}, watermark {before} to {after}"
            )
            try:
                relations = self._modeled(Epoch([_row(record) for record in records], [], before, after, idle), relations)
            except Ambiguous:
                return "ambiguous"
            self._compare(driver, relations[-1])
            before = after
            if chance.random() < 0.25:
                driver.restart()
        self._compare_lateness(driver)
        return "same"

    def _records(self, chance: random.Random, number: int, used: set[int]) -> list[Record]:
        found = []
        for _ in range(chance.randint(0, 6)):
            second = number * 7 + chance.randint(-25 if chance.random() < 0.3 else -8, 15)
            if self.chain.ordered and second in used:
                continue
            used.add(second)
            key, value = chance.choice(["a", "a", "b", "c", None]), chance.choice([None, -2, 0, 1, 1, 3, 5, 8])
            at = START + timedelta(seconds=second * self.chain.unit)
            found.append({"k": key, "g": chance.choice(["x", "y"]), "v": value, "at": at})
        return found

    def _modeled(self, epoch: Epoch, relations: list[Relation]) -> list[Relation]:
        found = []
        for link, known in zip(self.chain.links, relations, strict=True):
            relation = link.model.epoch(epoch)
            if isinstance(link.model, Positive):
                epoch = link.model.narrowed(epoch)
            else:
                added, removed = difference(relation, known)
                epoch = replace(epoch, added=added, removed=removed)
            found.append(relation)
        return found

    def _compare(self, driver: TestDriver, wanted: Relation) -> None:
        found = Counter(tuple(sorted(_plain(row).items())) for row in driver.rows("out"))
        expected = Counter[Any]()
        for row, count in wanted.items():
            expected[row.cells] += count
        assert found == expected, "\n".join(
            [
                f"seed {self.seed}: {self.chain.words} (unit {self.chain.unit})", *self.told,
                "missing:", *(str(dict(row)) for row in (expected - found).elements()),
                "too much:", *(str(dict(row)) for row in (found - expected).elements()),
            ]
        )  # fmt: skip

    def _compare_lateness(self, driver: TestDriver) -> None:
        wanted, found = sum(link.model.late for link in self.chain.links), sum(step["late"] for step in driver.accounting())
        assert found == wanted, f"seed {self.seed}: {self.chain.words}: late {found}, and should be {wanted}\n" + "\n".join(self.told)


def _row(record: Record) -> Row:
    return Row.of(_micros(record["at"]), **_plain(record))


def _plain(row: Record) -> Record:
    """Times as microseconds."""
    return {name: _micros(value) if isinstance(value, datetime) else value for name, value in row.items()}


def _micros(moment: datetime) -> int:
    return round((moment - _BEGINNING) / timedelta(seconds=1) * SECOND)
