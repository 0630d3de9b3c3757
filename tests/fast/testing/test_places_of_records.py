"""The place of a record, as a column that results carry along."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import headrace as hr

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS = "k string, n int, at timestamp"


def records(*numbers: int) -> list[dict[str, object]]:
    return [{"k": "x", "n": n, "at": NOON.replace(second=n)} for n in numbers]


def test_results_say_which_records_they_come_from(tmp_path: Path) -> None:
    app = hr.App("places", home=tmp_path)
    stream = app.stream("facts", COLUMNS, time="at", watermark=hr.bounded("0s"), partitions=1).with_place("place")
    odd = stream.where("n % 2 = 1").with_columns(n="n * 10")
    app.view("windows", odd.window(hr.tumbling("1 minute"), by="k").agg(places="collect_list(place)"))
    app.view("latest", odd.to_table("k", ttl=None))
    with hr.TestDriver(app) as driver:
        driver.send("facts", records(1, 2))
        driver.send("facts", records(3, 4, 5))
        driver.end()
        (row,) = driver.rows("windows")
        assert row["places"] == [{"partition": 0, "offset": offset} for offset in (0, 2, 4)]
        assert driver.rows("latest")[0]["place"] == {"partition": 0, "offset": 4}


def test_a_union_takes_structs_whose_fields_may_be_null_in_one_of_the_streams(tmp_path: Path) -> None:
    app = hr.App("unions", home=tmp_path)
    one = app.stream("one", "a int").select("array(named_struct('x', 1)) as xs")
    other = app.stream("other", "a int").select("array(named_struct('x', a)) as xs")
    app.sink(one.union(other), hr.log("both"), name="both")
    with hr.TestDriver(app) as driver:
        driver.send("one", [{"a": 5}])
        driver.send("other", [{"a": None}])
        assert [row["xs"] for row in driver.rows("both")] == [[{"x": 1}], [{"x": None}]]
