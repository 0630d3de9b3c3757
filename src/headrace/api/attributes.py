"""Attributes that a stream does not have, with what to write instead: names of PySpark's DataFrame, columns, steps of others."""

from __future__ import annotations

from collections.abc import Collection

_HERE = {
    "emit": 'window(...).agg(...).emit(early="5 seconds"): only windows have several results',
    "agg": 'group("user", ttl=None).agg(spent="sum(amount)"), or window(...).agg(...)',
    "filter": 'where("amount > 5")',
    "groupBy": 'group("user", ttl=None), or window(hr.tumbling("1 minute"), by="user")',
    "withColumn": 'with_columns(tax="amount * 0.2")',
    "withColumns": 'with_columns(tax="amount * 0.2")',
    "withColumnRenamed": 'select("amount as price", ...)',
    "withWatermark": 'app.stream(..., time="at", watermark=hr.bounded("30 seconds"))',
    "drop": "select(...) of the columns that stay",
    "selectExpr": 'select("amount * 2 as double")',
    "dropDuplicates": 'dedup("id", ttl="1 day")',
    "dropDuplicatesWithinWatermark": 'dedup("id", ttl="1 day")',
    "unionAll": "union(other)",
    "unionByName": "union(other), with the columns in one order",
    "map": 'with_columns(tax="amount * 0.2"), or transform(function)',
    "orderBy": 'top(10, by="amount")',
    "sort": 'top(10, by="amount")',
    "limit": 'top(10, by="amount")',
    "writeStream": 'app.sink(stream, hr.log("topic")), or app.view("name", table)',
    "write": 'app.sink(stream, hr.log("topic")), or app.view("name", table)',
    "show": 'app.view("name", table), then app.read("name") when the job has run',
    "collect": 'app.view("name", table), then app.read("name") when the job has run',
    "toPandas": 'app.view("name", table), then app.read("name").to_pandas() when the job has run',
}
_LOWER = {name.lower(): here for name, here in _HERE.items()}


def no_attribute(kind: str, name: str, columns: Collection[str]) -> str:
    """The fact that a stream or table has no such attribute, and what to write instead, where that is known.

    >>> no_attribute("Stream", "filter", ["url"])
    'a Stream has no filter: write where("amount > 5")'
    >>> no_attribute("Stream", "url", ["url"])
    'a Stream has no attribute \\'url\\': write the column in an expression, as text: where("url is not null")'
    """
    here = _LOWER.get(name.lower())
    if here is not None:
        return f"a {kind} has no {name}: write {here}"
    if name in columns:
        return f'a {kind} has no attribute {name!r}: write the column in an expression, as text: where("{name} is not null")'
    return f"{kind!r} object has no attribute {name!r}"


def only_agg(kind: str, name: str) -> str:
    """The fact that windows and groups have no step but `agg`.

    >>> only_agg("Windowed", "where")
    'a Windowed has no where: say first what to compute, .agg(views="count(*)"); other steps come before it or after that'
    """
    return f'a {kind} has no {name}: say first what to compute, .agg(views="count(*)"); other steps come before it or after that'
