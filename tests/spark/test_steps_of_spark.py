"""Steps that only Spark evaluates: answers, errors, late records and counts are as if they had been fused."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import headrace as hr
from headrace.core.errors import JobError, PlanError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def send(app: hr.App, topic: str, rows: list[dict[str, Any]]) -> None:
    # One batch, however slow the machine: each batch without keys goes to another partition, and moves its time.
    with app.log.producer(linger=None) as producer:
        for row in rows:
            producer.send(topic, row)


def counts(report: Any) -> dict[str, dict[str, int]]:
    return {row["step"]: row for row in report.accounting}


def payload(user: str, number: object) -> str:
    return json.dumps({"user": user, "n": number})


def test_expressions_that_are_not_fused_are_evaluated_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("remote", home=tmp_path)
    events = app.stream(
        "events",
        schema="payload string, angle double, at timestamp",
        time="at",
        watermark=hr.bounded("10 seconds", idle="1 hour"),
        partitions=2,
    )
    read = (
        events.where("sin(angle) >= 0")
        .with_columns(
            user="get_json_object(payload, '$.user')",
            number="cast(get_json_object(payload, '$.n') as int)",
            # The same part once more: Spark must not compute it ahead of both, unguarded.
            negative="- cast(get_json_object(payload, '$.n') as int)",
        )
        .where("user <> 'nobody'")
    )
    per_user = read.window(hr.tumbling("1 minute"), by="user").agg(
        total="sum(number)", height="max(sin(angle))", digest="sha2(max(payload), 256)"
    )
    app.view("per_user", per_user)
    app.view("high", per_user.where("cbrt(total) > 2"))
    first: list[dict[str, Any]] = [
        {"payload": payload(f"u{n % 3}", n), "angle": n / 10 if n % 5 else -1.0, "at": at(n)} for n in range(1, 100)
    ]
    bad = [{"payload": payload("u1", "many"), "angle": 1.0, "at": at(30)}, {"payload": payload("nobody", 1), "angle": 1.0, "at": at(31)}]
    send(app, "events", first + bad)
    app.run(until="caught-up")
    late = {"payload": payload("u1", 5), "angle": 1.0, "at": at(2)}
    send(app, "events", [late, {"payload": payload("u2", 7), "angle": 1.0, "at": at(100)}])
    report = app.run(until="end")

    taken = [row for row in first if math.sin(row["angle"]) >= 0] + [{"payload": payload("u2", 7), "angle": 1.0, "at": at(100)}]
    windows: dict[tuple[str, datetime], list[dict[str, Any]]] = defaultdict(list)
    for row in taken:
        windows[json.loads(row["payload"])["user"], row["at"].replace(second=0)].append(row)
    expected = {
        key: (
            sum(json.loads(row["payload"])["n"] for row in rows),
            hashlib.sha256(max(row["payload"] for row in rows).encode()).hexdigest(),
        )
        for key, rows in windows.items()
    }
    found = app.read("per_user").to_pylist()
    assert {(row["user"], row["window_start"]): (row["total"], row["digest"]) for row in found} == expected
    for row in found:
        heights = [math.sin(one["angle"]) for one in windows[row["user"], row["window_start"]]]
        assert row["height"] == pytest.approx(max(heights))
    assert {(row["user"], row["window_start"]) for row in app.read("high").to_pylist()} == {
        key for key, (total, _) in expected.items() if total ** (1 / 3) > 2
    }

    (letter,) = app.log.read("events.dead").to_pylist()
    assert letter["step"] == "events.where.with_columns"
    assert letter["reason"] == "Spark raised an error in cast(get_json_object(payload, '$.n') as int)"
    assert json.loads(letter["record"])["payload"] == bad[0]["payload"]
    (original,) = [
        row for row in app.log.read("events").to_pylist() if (row["_partition"], row["_offset"]) == (letter["partition"], letter["offset"])
    ]
    assert original["payload"] == bad[0]["payload"]
    (lost,) = app.log.read("events.late").to_pylist()
    assert {name: lost[name] for name in late} == late
    counted = counts(report)
    assert counted["events"]["in"] == len(first) + 4
    below = sum(math.sin(row["angle"]) < 0 for row in first)
    assert (counted["events.where"]["filtered"], counted["events.where.with_columns"]["dead_letter"]) == (below, 1)
    assert (counted["events.where.with_columns.where"]["filtered"], counted["events.where.with_columns.where.window"]["late"]) == (1, 1)


def words(frame: DataFrame) -> DataFrame:
    split = frame.where("text <> ''").select(sql.explode(sql.split("text", " ")).alias("word"), "at")
    return split.repartition(3).withColumn("length", sql.length("word"))


def test_a_function_over_a_dataframe_may_filter_multiply_and_shuffle(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("words", home=tmp_path)
    lines = app.stream(
        "lines", schema="text string, at timestamp", time="at", watermark=hr.bounded("10 seconds", idle="1 hour"), partitions=2
    )
    made = lines.transform(words, schema="word string, at timestamp, length int")
    app.view("per_word", made.window(hr.tumbling("1 minute"), by="word").agg(n="count(*)", length="max(length)"))
    app.view("lines_per_minute", lines.window(hr.tumbling("1 minute")).agg(n="count(*)"))
    texts = ["the mill", "", "the wheel the race", "water"]
    send(app, "lines", [{"text": texts[n % 4], "at": at(n)} for n in range(40)])
    app.run(until="caught-up")
    send(app, "lines", [{"text": "late again", "at": at(-100)}, {"text": "mill", "at": at(70)}])
    report = app.run(until="end")
    found = {(row["word"], row["window_start"]): (row["n"], row["length"]) for row in app.read("per_word").to_pylist()}
    first = {"the": 30, "mill": 10, "wheel": 10, "race": 10, "water": 10}
    assert found == {(word, NOON): (n, len(word)) for word, n in first.items()} | {("mill", at(60)): (1, 4)}
    assert sorted(row["n"] for row in app.read("lines_per_minute").to_pylist()) == [1, 40]
    counted = counts(report)
    step = counted["lines.transform"]
    assert (step["in"], step["out"], step["filtered"]) == (42, 42, 0)
    assert (counted["lines.transform.window"]["in"], counted["lines.transform.window"]["late"]) == (73, 2)
    late = app.log.read("lines.late").to_pylist()
    assert sorted((row["step"], row["text"]) for row in late) == [
        ("lines.transform.window", None), ("lines.transform.window", None), ("lines.window", "late again"),
    ]  # fmt: skip


def test_what_a_function_filters_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("filtered", home=tmp_path)
    numbers = app.stream("numbers", schema="n int, at timestamp", time="at", watermark=hr.bounded("10 seconds"))
    app.view("last", numbers.transform(lambda frame: frame.where("n % 3 = 0")), key="n")
    send(app, "numbers", [{"n": n, "at": at(n)} for n in range(10)])
    report = app.run(until="end")
    assert sorted(row["n"] for row in app.read("last").to_pylist()) == [0, 3, 6, 9]
    step = counts(report)["numbers.transform"]
    assert (step["in"], step["out"], step["filtered"]) == (10, 4, 6)


def test_a_function_that_makes_other_columns_than_declared_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("columns", home=tmp_path)
    numbers = app.stream("numbers", schema="n int, at timestamp", time="at", watermark=hr.bounded("10 seconds"))
    app.view("last", numbers.transform(lambda frame: frame.withColumn("m", sql.lit(1))), key="n")
    with pytest.raises(PlanError, match="makes \\(n int, at timestamp, m int\\), not \\(n int, at timestamp\\)") as error:
        app.run(until="end")
    assert "test_steps_of_spark.py" in str(error.value.where)


def failing_in_spark(frame: DataFrame) -> DataFrame:
    return frame.withColumn("n", sql.expr("cast(cast(n as int) as string)"))


def failing_in_python(frame: DataFrame) -> DataFrame:
    return frame.withColumn("n", sql.udf(lambda text: str(int(text)), "string")("n"))


@pytest.mark.parametrize(("function", "said"), [(failing_in_spark, "CAST_INVALID_INPUT"), (failing_in_python, "ValueError")])
def test_an_error_inside_a_function_stops_the_job_by_name(
    spark: SparkSession, tmp_path: Path, function: Callable[[DataFrame], DataFrame], said: str
) -> None:
    app = hr.App("stops", home=tmp_path)
    numbers = app.stream("numbers", schema="n string, at timestamp", time="at", watermark=hr.bounded("10 seconds"))
    app.view("last", numbers.transform(function), key="n")
    send(app, "numbers", [{"n": "1", "at": at(0)}, {"n": "one", "at": at(1)}])
    with pytest.raises(JobError, match=rf"in the function of step 'numbers\.transform': .*{said}"):
        app.run(until="end")
    assert app.read("last").num_rows == 0


def test_a_function_that_raises_is_refused_at_its_line(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("raises", home=tmp_path)
    numbers = app.stream("numbers", schema="n int, at timestamp", time="at", watermark=hr.bounded("10 seconds"))
    app.view("last", numbers.transform(lambda frame: frame.where(None)), key="n")
    with pytest.raises(PlanError, match=r"the function of step 'numbers\.transform' failed: \w+: .+") as error:
        app.run(until="end")
    assert "test_steps_of_spark.py" in str(error.value.where)


def test_a_function_that_aggregates_without_a_window_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("aggregates", home=tmp_path)
    numbers = app.stream("numbers", schema="n int, at timestamp", time="at", watermark=hr.bounded("10 seconds"))
    counted = numbers.transform(lambda frame: frame.groupBy("at").agg(sql.max("n").alias("n")).select("n", "at"))
    app.view("last", counted, key="n")
    with pytest.raises(PlanError, match=r"what the function of step 'numbers\.transform' makes"):
        app.run(until="end")


COLUMNS = (
    "id int, text string, amount decimal(12,2), ratio double, at timestamp, day date, raw binary, "
    "tags array<string>, place struct<lat: double, name: string>, marks map<string, int>"
)
FUSED = {
    "number": "cast(text as int)", "product": "amount * 3", "part": "1 / ratio", "hour": "date_trunc('hour', at)",
    "next": "date_add(day, 1)", "raw": "raw", "tag": "tags[0]", "tags": "tags", "place": "place", "marks": "marks",
    "loud": "upper(concat(text, 'é'))",
}  # fmt: skip


def values() -> list[dict[str, Any]]:
    texts = ["1", " 22 ", "x", "", None, "9999999999", "Straße 日本"]
    ratios = [0.5, float("nan"), float("inf"), -0.0, None, 3.0, 1e300]
    return [
        {
            "id": n, "text": texts[n % 7], "amount": None if n == 4 else Decimal(n) / 4, "ratio": ratios[n // 7], "at": at(n),
            "day": None if n == 5 else NOON.date(), "raw": bytes([n]) if n % 3 else None, "tags": [["a", None], [], None][n % 3],
            "place": {"lat": n / 2, "name": None} if n % 4 else None, "marks": [{"a": n, "b": None}, {}, None][n % 3],
        }
        for n in range(49)
    ]  # fmt: skip


def test_what_spark_evaluates_equals_what_is_fused(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("both", home=tmp_path)
    records = app.stream("records", schema=COLUMNS, time="at", watermark=hr.bounded("10 seconds", idle="1 hour"), partitions=2)
    # A function that is not fused takes the whole expression to Spark.
    remote = [f"if(sin(ratio) = 17, null, {text}) as {name}" for name, text in FUSED.items()]
    app.view("fused", records.select("id", *(f"{text} as {name}" for name, text in FUSED.items())), key="id")
    app.view("remote", records.select("id", *remote), key="id")
    send(app, "records", values())
    report = app.run(until="end")
    fused, evaluated = ({row["id"]: str(row) for row in app.read(view).to_pylist()} for view in ("fused", "remote"))
    assert fused == evaluated
    assert 0 < len(fused) < len(values())
    letters: dict[str, set[tuple[int, int, str]]] = defaultdict(set)
    for letter in app.log.read("records.dead").to_pylist():
        letters[letter["step"]].add((letter["partition"], letter["offset"], letter["record"]))
    first, second = letters.values()
    assert first == second
    assert len(first) == len(values()) - len(fused)
    # Spark words its reasons otherwise.
    one, other = ({name: n for name, n in counts(report)[step].items() if name not in ("step", "dead_letter_reason")} for step in letters)
    assert one == other


def test_steps_of_spark_follow_each_other_in_any_order(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("mixed", home=tmp_path)
    numbers = app.stream(
        "numbers", schema="n int, at timestamp", time="at", watermark=hr.bounded("10 seconds", idle="1 hour"), partitions=2
    )
    even = numbers.where("sin(n) < 2 and n % 2 = 0").transform(lambda frame: frame.union(frame).where("n > 2"))
    each = even.transform(lambda frame: frame.distinct()).flat_map("cast(sequence(1, n div 2) as array<int>)", "part")
    app.view("parts", each.where("cbrt(part) > 1").group("part", ttl=None).agg(n="count(*)"))
    send(app, "numbers", [{"n": n, "at": at(n)} for n in range(6)])
    app.run(until="caught-up")
    send(app, "numbers", [{"n": n, "at": at(n)} for n in range(6, 10)])
    report = app.run(until="end")
    # 4, 6 and 8 are left, once each, and are taken apart to 1 2, 1 2 3 and 1 2 3 4.
    assert {row["part"]: row["n"] for row in app.read("parts").to_pylist()} == {2: 3, 3: 2, 4: 1}
    steps = [(row["in"], row["out"], row["filtered"]) for row in report.accounting]
    # Of a function only what went in and what came out is known, epoch by epoch: of 0, 2 and 4 it made two, of 6 and 8 four.
    assert steps[:4] == [(10, 10, 0), (10, 5, 5), (5, 4, 1), (6, 3, 3)]
