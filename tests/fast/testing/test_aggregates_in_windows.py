"""Every aggregate in every kind of window is that of the window's records, whatever the batches, the shards and the restarts."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import polars as pl
import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, calendar, global_, hopping, session, sliding, tumbling
from headrace.operators.windows import sliding as sliding_windows
from headrace.plan.aggregates.user_aggregate import Aggregate
from headrace.testing.driver import TestDriver
from tests.fast.operators.test_aggregates import frame, rows
from tests.support.aggregating import SCHEMA, aggregated
from tests.support.examples import some
from tests.support.near import near


class Largest(Aggregate):
    state: ClassVar = {"most": "double"}
    returns = "double"

    def partial(self, *values: pl.Expr) -> dict[str, pl.Expr]:
        return {"most": values[0].abs().max()}

    def merge(self, state: Any) -> dict[str, pl.Expr]:
        return {"most": state["most"].max()}

    def finish(self, state: Any) -> pl.Expr:
        return state["most"]


TEXTS = [
    "sum(d)", "avg(m)", "stddev(i)", "var_pop(m) filter (where b)", "bool_and(b)", "bool_or(b)", "any_value(s)", "first(s, true)",
    "last(s) filter (where b) ignore nulls",
    "count(distinct s)", "count(distinct s, b)", "collect_list(s)", "collect_set(d)", "max_by(s, i, 2)", "min_by(a, m, 3)",
    "approx_count_distinct(s)", "approx_count_distinct(l, 0.01) filter (where b)", "approx_percentile(d, array(0.0, 0.5))",
    "percentile_approx(a, 0.9, 100)", "approx_top_k(s, 3)", "heavy_hitters(l, 0.2)", "array(min(i), max(i))",
    "map('all', count(*), 'known', count(s))", "largest(d)",
]  # fmt: skip
Windowed = Callable[[Stream, dict[str, str]], Stream]
WINDOWS: dict[str, Windowed] = {
    "tumbling": lambda stream, wanted: stream.window(tumbling("10s"), by="k").agg(**wanted),
    "hopping": lambda stream, wanted: stream.window(hopping("20s", every="5s"), by="k").agg(**wanted),
    "session": lambda stream, wanted: stream.window(session("3s"), by="k").agg(**wanted),
    "sliding": lambda stream, wanted: stream.window(sliding("15s"), by="k").agg(**wanted),
    "sliding, all windows at once": lambda stream, wanted: stream.window(sliding("15s"), by="k").agg(**wanted),
    "calendar": lambda stream, wanted: stream.window(calendar("1 hour", zone="Europe/Berlin"), by="k").agg(**wanted),
    "corrected": lambda stream, wanted: stream.window(hopping("20s", every="10s"), by="k").agg(**wanted).emit(early="4s", until="1h"),
    "global": lambda stream, wanted: stream.window(global_(), by="k").agg(**wanted).emit(every=4),
    "group": lambda stream, wanted: stream.group("k", ttl=None).agg(**wanted),
}


@pytest.mark.parametrize("kind", WINDOWS)
def test_every_aggregate_of_a_window_is_that_of_its_records(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "sliding, all windows at once":
        monkeypatch.setattr(sliding_windows, "_FEW", 0)
    seed = list(WINDOWS).index(kind)
    chance, made = random.Random(seed), rows(seed, 30)
    app = Declaration(kind)
    app.aggregate("largest", Largest())
    # What comes after windows fired is let in where they are corrected.
    stream = app.stream("rows", SCHEMA, key="s", time="at", watermark=bounded("1s" if kind == "corrected" else "1h"))
    texts = some(TEXTS, seed, every=2)
    app.view("found", WINDOWS[kind](stream, {f"c{place}": text for place, text in enumerate(texts)}))
    with TestDriver(app, shards=2, partitions=2) as driver:
        cuts = sorted(chance.sample(range(1, 30), 3))
        for low, high in zip([0, *cuts], [*cuts, 30], strict=True):
            driver.send("rows", made[low:high])
            driver.restart()
        driver.end()
        assert driver.dead_letters("rows") == driver.late("rows") == []
        found = driver.rows("found")
    for row in chance.sample(found, min(len(found), 8)):
        check(row, kind, made, texts)


def check(row: dict[str, Any], kind: str, made: list[dict[str, Any]], texts: Sequence[str]) -> None:
    inside = [one for one in made if one["k"] == row["k"]]
    if "window_end" in row and kind != "global":
        closed = kind.startswith("sliding")
        inside = [
            one for one in inside if row["window_start"] <= one["at"] < row["window_end"] or (closed and one["at"] == row["window_end"])
        ]
    wanted = aggregated(texts, frame(inside), own=OWN)[row["k"]]
    for place, text in enumerate(texts):
        assert near(row[f"c{place}"], wanted[text]), (kind, text, row, wanted[text])


OWN = {"largest": Largest()}
