"""An app that changes while its job goes on: after each accepted change its tables are those of a run from the beginning."""

from __future__ import annotations

import random
from collections.abc import Mapping

import polars as pl
import pytest

from headrace.operators.event_time.epoch_time import EpochTime
from headrace.plan.evolution.comparison import KEEP, REFUSED, Decisions, compared
from headrace.plan.evolution.described import described
from headrace.testing.driver import TestDriver
from tests.support.evolving import Spec, drawn, edited, records
from tests.support.examples import seeds, soaked


class Recorded(TestDriver):
    """A driver that knows each of its epochs: the records, the time and the limits."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec.app())
        self.epochs: list[tuple[Mapping[str, pl.DataFrame], EpochTime, Mapping[str, int]]] = []

    def replay(self, batches: Mapping[str, pl.DataFrame], time: EpochTime, limits: Mapping[str, int]) -> None:
        self.epochs.append((batches, time, limits))
        super().replay(batches, time, limits)


class Evolving:
    """A driver that goes on through edits, and all that was sent to it."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.driver = Recorded(spec)
        self._sent: list[list[dict[str, object]]] = []
        # Outputs that keep older rows although a difference was announced, with these rows; and outputs of which older rows may be
        # missing.
        self._announced: dict[str, set[str]] = {}
        self._younger: set[str] = set()
        self._differs = False

    def send(self, rows: list[dict[str, object]]) -> None:
        self._sent.append(rows)
        self.driver.send("clicks", rows)

    def refuses(self, spec: Spec) -> bool:
        return compared(described(self.spec.app().plan()), described(spec.app().plan())).status == REFUSED

    def evolve(self, spec: Spec, shards: int | None) -> Decisions:
        before = {name: set(map(repr, self.driver.rows(name))) for name in self.spec.outputs}
        changes = self.driver.evolve(spec.app(), shards=shards)
        self.spec = spec
        outputs = {decision.name: decision for decision in changes.decisions if decision.kind in ("view", "sink")}
        self._announced = {name: rows for name, rows in self._announced.items() if name in outputs}
        self._younger &= outputs.keys()
        self._differs |= any(decision.differs for decision in changes.decisions if decision.kind in ("stream", "step"))
        for name, decision in outputs.items():
            if decision.differs and decision.decision == KEEP:
                self._announced.setdefault(name, set()).update(before[name])
            elif decision.differs:
                self._younger.add(name)
        return changes

    def from_the_beginning(self) -> TestDriver:
        scratch = TestDriver(self.spec.app())
        if self._differs:
            # Another bound counts from its change on. The app as it is now, with the watermarks that there were, has the same late records.
            for epoch in self.driver.epochs:
                scratch.replay(*epoch)
            return scratch
        for rows in self._sent:
            scratch.send("clicks", rows)
        return scratch

    def check(self) -> None:
        scratch = self.from_the_beginning()
        for name in self.spec.outputs:
            found, wanted = (sorted(map(repr, driver.rows(name))) for driver in (self.driver, scratch))
            if name in self._announced:
                assert [row for row in found if row not in wanted and row not in self._announced[name]] == [], name
            elif name in self._younger:
                assert [row for row in found if row not in wanted] == [], name
            else:
                assert found == wanted, name


@pytest.mark.parametrize("seed", seeds(soaked(320, 80)))
def test_after_accepted_changes_tables_are_those_of_a_run_from_the_beginning(seed: int) -> None:
    chance = random.Random(seed)
    life, epoch = Evolving(drawn(chance)), 0
    for number in range(4):
        for _ in range(chance.randint(1, 2)):
            life.send(records(chance, epoch))
            epoch += 1
        edit = edited(life.spec, chance, number)
        shards = chance.choice([None, None, 1, 3, 5])
        refused = life.refuses(edit.spec)
        assert edit.refused in (None, refused), edit.said
        if not refused:
            life.evolve(edit.spec, shards)
        if chance.random() < 0.5:
            life.driver.restart()
        life.send(records(chance, epoch))
        epoch += 1
        if number % 2:
            life.check()
