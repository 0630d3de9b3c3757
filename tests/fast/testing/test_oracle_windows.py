"""Every kind of window and mode, whatever the order, the batches, the partitions, the shards and the crashes: what DuckDB computes."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, calendar, count_window, custom, global_, hopping, session, sliding, tumbling
from headrace.core.columns.schema import schema
from tests.support.examples import examples
from tests.support.oracles import normal, run
from tests.support.streams import SCHEMA, Row, arrivals, records

COMPUTED = {"records": "count(*)", "total": "sum(value)", "most": "max(value)"}
SQL = "count(*) as records, sum(value)::bigint as total, max(value) as most"
# Berlin is an hour ahead of UTC in winter, when the records are.
QUERIES = {
    "tumbling": f"select key, time // 10 * 10 as window_start, {SQL} from records group by all",
    "hopping": f"""select key, start as window_start, {SQL}
        from (select *, unnest([time // 20 * 20, time // 20 * 20 - 20]) as start from records) where time < start + 30 group by all""",
    "session": f"""select key, min(time) as window_start, {SQL} from (
        select *, sum(begins::int) over (partition by key order by time range unbounded preceding) as number from (
        select *, coalesce(time - lag(time) over (partition by key order by time) >= 5, true) as begins
        from records)) group by key, number""",
    "calendar": f"select key, (time + 3600) // 86400 * 86400 - 3600 as window_start, {SQL} from records group by all",
    "custom": f"select key, time // 30 * 30 as window_start, {SQL} from records group by all",
    "global": f"select key, null as window_start, {SQL} from records group by key",
}
SLIDING = """select distinct key, time as window_end,
        count(*) over near as records, (sum(value) over near)::bigint as total, max(value) over near as most
    from records window near as (partition by key order by time range between 20 preceding and current row)"""


def half_minutes(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    start = times.astype("int64") // 30_000_000 * 30_000_000
    return start.astype("datetime64[us]"), (start + 30_000_000).astype("datetime64[us]")


WINDOWS = {
    "tumbling": tumbling("10s"),
    "hopping": hopping("30s", every="20s"),
    "session": session("5s"),
    "calendar": calendar("1 day", zone="Europe/Berlin"),
    "custom": custom(half_minutes),
    "global": global_(),
}


def app() -> Declaration:
    """Each window with early panes that replace each other, and with panes that are added up; windows of events and of counts."""
    declared = Declaration("windows")
    stream = declared.stream("records", SCHEMA, key="key", time="at", watermark=bounded("15s"))
    for name, window in WINDOWS.items():
        results = stream.window(window, by="key").agg(**COMPUTED)
        declared.view(f"{name} retracting", results.emit(early="7s", every=4))
        parts = stream.window(window, by="key").agg(**COMPUTED).emit(every=2, early="30s", mode="discarding")
        declared.view(f"{name} discarding", parts.group(["key"], ttl=None).agg(records="sum(records)", total="sum(total)"))
    declared.view("sliding", stream.window(sliding("20s"), by="key").agg(**COMPUTED))
    declared.view("counts", stream.window(count_window(3, every=2), by="key").agg(records="count(*)", total="sum(value)"))
    return declared


def wanted(rows: list[Row]) -> dict[str, list[Row]]:
    with duckdb.connect() as database:
        database.register("arrived", pa.Table.from_pylist(rows, schema=schema(SCHEMA)))
        database.execute('create table records as select key, value, (epoch_us("at") // 1000000)::bigint as time from arrived')

        def ask(query: str) -> list[Row]:
            answer = database.execute(query)
            names = [column[0] for column in answer.description or ()]
            return normal([dict(zip(names, row, strict=True)) for row in answer.fetchall()])

        found = {f"{name} retracting": ask(query) for name, query in QUERIES.items()}
        totals = ask("select key, count(*) as records, sum(value)::bigint as total from records group by key")
        # In windows that overlap, a record is in several panes.
        return found | {f"{name} discarding": totals for name in QUERIES if name != "hopping"} | {"sliding": ask(SLIDING)}


@settings(max_examples=examples(3), report_multiple_bugs=False)
@given(st.data())
def test_every_window_ends_where_a_batch_over_everything_would(data: st.DataObject) -> None:
    rows = data.draw(records())
    drivers = [run(app(), data.draw(arrivals(rows, disorder=15))) for _ in range(2)]
    hidden = ("pane", "revision", "window_number")
    for name, table in wanted(rows).items():
        shown = set(table[0]) if table else set()
        for driver in drivers:
            assert normal([{k: v for k, v in row.items() if k in shown} for row in driver.rows(name)]) == table, name
    counts = [normal([{k: v for k, v in row.items() if k not in hidden} for row in driver.rows("counts")]) for driver in drivers]
    assert counts[0] == counts[1]
    for driver in drivers:
        assert driver.late("records") == []
        assert {size["step"]: size["rows"] for size in driver.state() if "group" not in size["step"] and size["rows"]} == {}


@settings(max_examples=examples(3), report_multiple_bugs=False)
@given(st.data())
def test_corrections_of_every_window_end_there_too(data: st.DataObject) -> None:
    rows = data.draw(records())
    declared = Declaration("corrections")
    stream = declared.stream("records", SCHEMA, key="key", time="at", watermark=bounded("1s"))
    for name, window in WINDOWS.items():
        declared.view(f"{name} retracting", stream.window(window, by="key").agg(**COMPUTED).emit(early="5s", until="30 days", late="10s"))
    slides = stream.window(sliding("20s"), by="key").agg(**COMPUTED).emit(until="30 days")
    declared.view("sliding", slides)
    declared.view("first panes", slides.where("revision = 0").group("key", ttl=None).agg(events="count(*)"))
    # Any order at all: records come up to hours late, and every window may still be corrected.
    driver = run(declared, data.draw(arrivals(rows, disorder=100_000)))
    tables = wanted(rows)
    for name in [*(f"{name} retracting" for name in WINDOWS), "sliding"]:
        shown = set(tables[name][0]) if tables[name] else set()
        assert normal([{k: v for k, v in row.items() if k in shown} for row in driver.rows(name)]) == tables[name], name
    assert driver.late("records") == []
    # What was corrected is no first pane any more, here and in what was made of it.
    first = sum(row["revision"] == 0 for row in driver.rows("sliding"))
    assert sum(row["events"] for row in driver.rows("first panes")) == first
