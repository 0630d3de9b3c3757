"""Measures of patterns in whole apps against their definition, running and final, over records in an order of their own."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from itertools import chain, pairwise
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.brute_patterns import Path, Story, matches
from tests.support.examples import seeds
from tests.support.random_patterns import Drawn, drawn
from tests.support.streams import at

SCHEMA = "key string, id int, value int, tag string, rank int, at timestamp"
Row = dict[str, Any]
Measure = tuple[str, Callable[[Story, Path], Any]]
"""What it is called in an app, and its value for the rows of a match so far."""


def measures_of(name: str, place: int) -> list[Measure]:
    """The measures over a variable."""

    def values(story: Story, path: Path, column: str = "value") -> list[Any]:
        return story.of(path, name, column)

    def known(story: Story, path: Path) -> list[Any]:
        return [value for value in values(story, path) if value is not None]

    return [
        (f"count({name}.*)", lambda s, p: len(values(s, p))),
        (f"sum({name}.value)", lambda s, p: sum(known(s, p)) if known(s, p) else None),
        (f"min({name}.value)", lambda s, p: min(known(s, p), default=None)),
        (f"avg({name}.value)", lambda s, p: sum(known(s, p)) / len(known(s, p)) if known(s, p) else None),
        (f"first({name}.value, {place})", lambda s, p: _nth(values(s, p), place)),
        (f"last({name}.value, {place})", lambda s, p: _nth(values(s, p), -place - 1)),
        (f"count(distinct {name}.tag)", lambda s, p: len({tag for tag in values(s, p, "tag") if tag is not None})),
        (f"collect_list({name}.id)", lambda s, p: values(s, p, "id")),
        (f"count({name}.*) filter (where {name}.value > 4)", lambda s, p: len([value for value in known(s, p) if value > 4])),
        (f"coalesce(max({name}.value), -1) + count(*)", lambda s, p: max(known(s, p), default=-1) + len(p)),
        (f"last({name}.id) - first(id)", lambda s, p: values(s, p, "id")[-1] - s.rows[p[0][0]]["id"] if values(s, p) else None),
    ]


ALWAYS: list[Measure] = [
    ("classifier()", lambda _s, p: p[-1][1]),
    ("value", lambda s, p: s.rows[p[-1][0]]["value"]),
    ("last(id)", lambda s, p: s.rows[p[-1][0]]["id"]),
    ("collect_list(id)", lambda s, p: [s.rows[row]["id"] for row, _ in p]),
]


def _nth(values: list[Any], place: int) -> Any:
    return values[place] if -len(values) <= place < len(values) else None


def rows_of(chance: random.Random) -> list[Row]:
    found, second = list[Row](), 0
    for number in range(chance.randrange(4, 28)):
        second += chance.choice([0, 0, 1, 1, 2, 5, 12])
        value, tag, rank = chance.choice([None, *range(10)]), chance.choice(["x", "y", None]), chance.choice([None, 1, 2, 3])
        key = chance.choice(["a", "a", "b", None])
        found.append({"key": key, "id": number, "value": value, "tag": tag, "rank": rank, "at": second})
    return found


def wanted_of(pattern: Drawn, arrived: list[Row], measures: list[Measure], *, final: set[int], every: bool) -> list[Any]:
    found = []
    for key in {row["key"] for row in arrived}:
        mine = [row for row in arrived if row["key"] == key]
        mine.sort(key=lambda row: (row["at"], row["rank"] is not None, row["rank"] or 0, row["offset"]))
        story = Story(mine)
        for path in matches(pattern.sought, story):
            for last in range(1, len(path) + 1) if every else [len(path)]:
                upto = path[:last]
                shown = [said(story, path if number in final else upto) for number, (_, said) in enumerate(measures)]
                found.append((key, *([mine[upto[-1][0]]["id"]] if every else []), shown))
    return sorted(found, key=str)


@pytest.mark.parametrize("block", range(8))
def test_measures_are_those_of_the_definition(block: int) -> None:
    for seed in seeds(50, block):
        chance = random.Random(seed + 7_000_000)
        pattern, rows, bound = drawn(chance), rows_of(chance), chance.choice([0, 5, 40])
        options, every = pattern.options(), chance.random() < 0.5
        if every and "{-" in options["pattern"]:
            continue
        known = sorted({name for name in "ABCD" if name in options["pattern"].replace("PERMUTE", "").replace(f"!{name}", "")})
        measures = [*ALWAYS, *(chance.choice(measures_of(chance.choice(known), chance.randrange(3))) for _ in range(4))]
        final = {number for number in range(1, len(measures)) if chance.random() < 0.4 and measures[number][0].endswith(")")}
        final = {number for number in final if measures[number][0].count("(") == 1}
        said = {f"m{number}": f"final {text}" if number in final else text for number, (text, _) in enumerate(measures)}
        arrived = sorted(rows, key=lambda row: (row["at"] + chance.uniform(0, bound), row["id"]))
        cuts = sorted({0, len(rows), *(chance.randrange(len(rows) + 1) for _ in range(chance.randrange(5)))})
        app = Declaration("measures")
        stream = app.stream("records", SCHEMA, key="key", time="at", watermark=bounded(timedelta(seconds=bound)))
        found = stream.match(**options, measures=said, rows="all" if every else "one", order="rank")
        app.sink(found, LogTopic("out"), name="out")
        with TestDriver(app) as driver:
            for low, high in pairwise(cuts):
                driver.send("records", [{**row, "at": at(row["at"])} for row in arrived[low:high]])
                if chance.random() < 0.4:
                    driver.restart()
                if chance.random() < 0.2:
                    driver.rescale(chance.choice([1, 2, 3]))
            driver.end()
            late = {row["id"] for row in driver.late("records")}
            taken = [
                {**row, "offset": place, "within": pattern.sought.within} for place, row in enumerate(arrived) if row["id"] not in late
            ]
            made = [(row["key"], *([row["id"]] if every else []), [row[name] for name in said]) for row in chain(driver.rows("out"))]
            wanted = wanted_of(pattern, taken, measures, final=final, every=every)
            assert sorted(made, key=str) == wanted, f"seed {seed}: {options} {said}"
