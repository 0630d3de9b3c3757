"""Patterns in whole apps against matching by the definition: whatever the order of arrival, epochs and restarts."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import chain, pairwise
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.operators.patterns import lockstep, matcher, operator, searches
from headrace.testing.driver import TestDriver
from tests.support.brute_patterns import Story, matches
from tests.support.examples import seeds
from tests.support.random_patterns import Drawn, drawn
from tests.support.streams import at

SCHEMA = "key string, id int, value int, tag string, at timestamp"
Row = dict[str, Any]
Found = list[tuple[str | None, tuple[tuple[str, int], ...]]]


def rows_of(chance: random.Random) -> list[Row]:
    """Rows of a few keys with bursts and gaps."""
    found, second = list[Row](), 0
    for number in range(chance.randrange(4, 28)):
        second += chance.choice([0, 0, 1, 1, 2, 5, 12])
        value, tag = chance.choice([None, *range(10)]), chance.choice(["x", "y", None])
        found.append({"key": chance.choice(["a", "a", "b", None]), "id": number, "value": value, "tag": tag, "at": second})
    return found


def epochs_of(rows: list[Row], chance: random.Random, disorder: float) -> list[list[Row]]:
    """An order of arrival, in batches."""
    ordered = sorted(rows, key=lambda row: (row["at"] + chance.uniform(0, disorder), row["id"]))
    cuts = sorted({0, len(rows), *(chance.randrange(len(rows) + 1) for _ in range(chance.randrange(5)))})
    return [ordered[low:high] for low, high in pairwise(cuts)]


def found_by(driver: TestDriver) -> Found:
    found = [(row["key"], tuple((one["variable"], one["offset"]) for one in row["evidence"])) for row in driver.rows("out")]
    return sorted(found, key=str)


def wanted_of(pattern: Drawn, epochs: list[list[Row]], late: set[int]) -> Found:
    found: Found = []
    arrived = [{**row, "offset": offset, "within": pattern.sought.within} for offset, row in enumerate(chain(*epochs))]
    for key in {row["key"] for row in arrived}:
        mine = [row for row in arrived if row["key"] == key and row["id"] not in late]
        mine.sort(key=lambda row: (row["at"], row["offset"]))
        paths = matches(pattern.sought, Story(mine))
        found += [(key, tuple((name, mine[row]["offset"]) for row, name in path)) for path in paths]
    return sorted(found, key=str)


def app_of(options: dict[str, Any], bound: int) -> Declaration:
    app = Declaration("patterns")
    stream = app.stream("records", SCHEMA, key="key", time="at", watermark=bounded(timedelta(seconds=bound)))
    app.sink(stream.match(**options), LogTopic("out"), name="out")
    return app


@pytest.mark.parametrize("block", range(8))
def test_matches_are_those_of_the_definition(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds(125, block):
        chance = random.Random(seed)
        # All ways to search: many keys at once or one by one, few states, few matches between looks at `where`, and kept rows looked up.
        monkeypatch.setattr(lockstep, "FEW", [0, 16][seed % 2])
        monkeypatch.setattr(matcher, "_AT_ONCE", [1, 3, 256][seed % 3])
        monkeypatch.setattr(searches, "_MOST_STATES", [4_000, 7][seed % 5 == 0])
        monkeypatch.setattr(operator, "_MANY", [20_000, 0][seed // 2 % 2])
        pattern, rows, bound = drawn(chance), rows_of(chance), chance.choice([0, 5, 40])
        epochs = epochs_of(rows, chance, bound * chance.choice([1, 1, 2]))
        with TestDriver(app_of(pattern.options(), bound)) as driver:
            for batch in epochs:
                driver.send("records", [{**row, "at": at(row["at"])} for row in batch])
                if chance.random() < 0.4:
                    driver.restart()
                if chance.random() < 0.1:
                    driver.rescale(chance.choice([1, 2, 3]))
            driver.end()
            late = {row["id"] for row in driver.late("records")}
            assert found_by(driver) == wanted_of(pattern, epochs, late), f"seed {seed}: {pattern.options()}"
            assert driver.state() == [{"step": "records.match", "rows": 0, "bytes": 0}], f"seed {seed}"
            counts = {row["step"]: row for row in driver.accounting()}["records.match"]
            assert (counts["in"], counts["late"], counts["dead_letter"]) == (len(rows), len(late), 0)
