"""All joins on Spark, in several runs of one job: what DuckDB's SQL makes of the whole input."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.core.settings import Settings
from tests.support.examples import seeds, soaked
from tests.support.joining import LEFT, RIGHT, asked, ordered, records, way

BOUND = 15


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("seed", seeds(soaked(30, 1)))
def test_every_join_is_the_same_on_spark_over_several_runs(tmp_path: Path, seed: int) -> None:
    chance = random.Random(5 + seed)
    sent = records(chance, 120)
    app = hr.App("joins", settings=Settings(home=tmp_path, master="local[2]"))
    timed: dict[str, Any] = {"key": "k", "time": "at", "watermark": hr.bounded(f"{BOUND}s", idle="1 day")}
    left, right = app.stream("a", LEFT, **timed), app.stream("b", RIGHT, **timed)
    near = "a.k = b.k and b.at between a.at - interval 2 second and a.at + interval 9 second"
    queries = {"versions": "select id, rid from a asof left join b on a.k = b.k and a.at >= b.at"}
    for how in ("inner", "full"):
        app.sink(left.join_within(right, on="k", within=("2s", "9s"), how=how).select("id, rid"), hr.log(f"{how}_out"), name=how)
        queries[f"{how}_out"] = f"select id, rid from a {how} join b on {near}"
    app.sink(left.join(right.to_table("k").as_of("at", history="1 hour"), on="k", how="left").select("id, rid"), hr.log("versions"))
    app.view("early", left.join(right.to_table("k").as_of("at", history="1 hour"), on="k", how="left").emit(early=True, key="id"))
    tables = left.to_table("id").join(right.to_table("rid"), on="k", how="full", ttl=None)
    app.view("tables", tables.select("id, rid, k"))
    epochs = way(chance, sent, BOUND).epochs
    thirds = [epochs[: len(epochs) // 3], epochs[len(epochs) // 3 : 2 * len(epochs) // 3], epochs[2 * len(epochs) // 3 :]]
    for part, until in zip(thirds, ("caught-up", "caught-up", "end"), strict=True):
        with app.log.producer() as producer:
            for stream, row in ((stream, row) for epoch in part for stream, rows in epoch.items() for row in rows):
                producer.send(stream, row)
        app.run(until=until, rows_per_epoch=25)
    both = {name: ([row for stream, row in sent if stream == name], kind) for name, kind in (("a", LEFT), ("b", RIGHT))}
    assert app.log.read("a.late").num_rows == app.log.read("b.late").num_rows == 0
    for topic, query in queries.items():
        got = ordered([(row["id"], row["rid"]) for row in app.log.read(topic).to_pylist()])
        assert got == asked(query, **both), topic
    got = ordered([(row["id"], row["rid"]) for row in app.read("early").to_pylist()])
    assert got == asked(queries["versions"], **both)
    got = ordered([(row["id"], row["rid"], row["k"]) for row in app.read("tables").to_pylist()])
    assert got == asked("select id, rid, coalesce(a.k, b.k) from a full join b on a.k = b.k", **both)
