"""One app with every kind of stateful step over the same stream, and what DuckDB makes of the same records."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from headrace.api.aggregating import Results
from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, hopping, session, tumbling
from headrace.core.columns.schema import schema
from headrace.testing.driver import TestDriver
from tests.support.near import Near
from tests.support.streams import SCHEMA, Arrival, Row

AGGREGATES = {
    "records": "count(*)",
    "total": "sum(value)",
    "most": "max(value)",
    "opening": "first(value)",
    "closing": "last(value)",
    "best": "max_by(tag, value)",
    "positive": "count(*) filter (where value > 0)",
    "every_value": "collect_list(value)",
    "each_tag": "collect_set(tag)",
    "tags": "count(distinct tag)",
    "pairs": "count(distinct tag, value) filter (where value > 0)",
    "all_positive": "bool_and(value > 0)",
    "any_tagged": "bool_or(tag is not null)",
    "spread": "var_pop(value)",
    "deviation": "stddev(value) filter (where tag is not null)",
    "best_two": "max_by(tag, value, 2)",
    "quartiles": "approx_percentile(value, array(0.25, 0.5))",
    "nearly": "approx_count_distinct(value, 0.005)",
    "ends": "array(min(value), max(value))",
}
# Over results that are corrected.
_RETRACTABLE = {
    "keys": "count(distinct key)",
    "names": "collect_set(key)",
    "repeated": "bool_or(records > 1)",
    "sizes": "collect_list(records)",
}
_COMPUTED = """
    count(*) records, sum(value)::bigint total, max(value) most,
    first(value order by time, value nulls last) opening, first(value order by time desc, value desc nulls last) closing,
    first(tag order by value desc, tag nulls last) filter (where value is not null) best, count(*) filter (where value > 0) positive,
    coalesce(list(value order by time, value) filter (where value is not null), []) every_value,
    coalesce(list_sort(list(distinct tag) filter (where tag is not null)), []) each_tag, count(distinct tag) tags,
    count(distinct (tag, value)) filter (where value > 0 and tag is not null) pairs,
    bool_and(value > 0) all_positive, bool_or(tag is not null) any_tagged,
    var_pop(value) spread, stddev_samp(value) filter (where tag is not null) deviation,
    (list(tag order by value desc, tag nulls last) filter (where value is not null))[1:2] best_two,
    case when count(value) > 0 then list_transform([0.25, 0.5], lambda share: list_extract(
        list(value order by value) filter (where value is not null), ceil(share * count(value))::int)) end quartiles,
    count(distinct value) nearly, [min(value), max(value)] ends
"""
# A window of 30 seconds every 20 holds a record if it begins less than 30 seconds before it.
_WINDOWS = f"""
    select key, start as window_start, start + $size as window_end, {_COMPUTED}
    from (select *, unnest([time // $hop * $hop, time // $hop * $hop - $hop]) as start from records)
    where time < start + $size
    group by all
"""
_SESSIONS = f"""
    with marked as (
        select *, coalesce(time - lag(time) over (partition by key order by time) >= $gap, true) as begins from records
    ), numbered as (
        select *, sum(begins::int) over (partition by key order by time range unbounded preceding) as number from marked
    )
    select key, min(time) as window_start, max(time) + $gap as window_end, {_COMPUTED}
    from numbered group by key, number
"""
_QUIET = "select key, time // 10 * 10 as start, count(*) as records from records group by all having count(*) < 3"
_CHAINED = f"""
    select start // 60 * 60 as window_start, start // 60 * 60 + 60 as window_end, sum(records)::bigint as records, count(*) as buckets,
        count(distinct key) as keys, coalesce(list_sort(list(distinct key) filter (where key is not null)), []) as names,
        bool_or(records > 1) as repeated, list(records order by start, records) as sizes
    from ({_QUIET}) group by all
"""


def app(bound: str, until: str) -> Declaration:
    """Tumbling, hopping and session windows, groups, a window over results of windows, and a table."""
    declared = Declaration("oracle")
    stream = declared.stream("records", SCHEMA, key="key", time="at", watermark=bounded(bound))

    def view(name: str, results: Results) -> Results:
        results = results.emit(until=until)
        declared.view(name, results)
        return results

    tens = view("tumbling", stream.window(tumbling("10s"), by="key").agg(**AGGREGATES))
    view("hopping", stream.window(hopping("30s", every="20s"), by="key").agg(**AGGREGATES))
    view("session", stream.window(session("5s"), by="key").agg(**AGGREGATES))
    declared.view("group", stream.group("key", ttl=None).agg(**AGGREGATES))
    quiet = tens.where("records < 3")
    declared.view("chained", quiet.window(tumbling("60s")).agg(records="sum(records)", buckets="count(*)", **_RETRACTABLE))
    declared.view("quiet", quiet.group("key", ttl=None).agg(buckets="count(*)"))
    return declared


def run(declared: Declaration, arrival: Arrival, *, end: bool = True) -> TestDriver:
    """Let the records arrive, and the engine crash where the arrival says so."""
    driver = TestDriver(declared, shards=arrival.shards, partitions=arrival.partitions)
    for number, batch in enumerate(arrival.batches):
        driver.send("records", batch)
        if number in arrival.crashes:
            driver.restart()
    if end:
        driver.end()
    return driver


def tables(driver: TestDriver) -> dict[str, list[Row]]:
    """What all views hold, without what depends on when records came."""
    names = ("tumbling", "hopping", "session", "group", "chained", "quiet")
    return {name: normal([{k: v for k, v in row.items() if k not in ("pane", "revision")} for row in driver.rows(name)]) for name in names}


def wanted(rows: list[Row]) -> dict[str, list[Row]]:
    """The same tables, computed by DuckDB over all the records at once; times are whole seconds there."""
    with duckdb.connect() as database:
        database.register("arrived", pa.Table.from_pylist(rows, schema=schema(SCHEMA)))
        database.execute('create table records as select key, value, tag, (epoch_us("at") // 1000000)::bigint as time from arrived')

        def ask(query: str, **parameters: int) -> list[Row]:
            answer = database.execute(query, parameters) if parameters else database.execute(query)
            names = [column[0] for column in answer.description or ()]
            return normal([dict(zip(names, row, strict=True)) for row in answer.fetchall()])

        return {
            "tumbling": ask(_WINDOWS, size=10, hop=10),
            "hopping": ask(_WINDOWS, size=30, hop=20),
            "session": ask(_SESSIONS, gap=5),
            "group": ask(f"select key, {_COMPUTED} from records group by key"),
            "chained": ask(_CHAINED),
            "quiet": ask(f"select key, count(*) as buckets from ({_QUIET}) group by key"),
        }


def normal(rows: list[Row]) -> list[Row]:
    """Rows in an order of their own, times as seconds since 1970."""
    plain = [{name: _plain(value) for name, value in sorted(row.items())} for row in rows]
    return sorted(plain, key=lambda row: repr([value for value in row.values() if not isinstance(value, Near)]))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return Near(value)
    return int(value.timestamp()) if hasattr(value, "timestamp") else value
