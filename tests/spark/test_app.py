"""`App` on Spark: run, stopped, gone on with, and read."""

from __future__ import annotations

import os
import signal
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import headrace as hr
from headrace.connectors.output import Changes, Writer
from headrace.core.columns.schema import schema
from headrace.engine.planning.quick_epochs import ONE, SEVERAL
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.listing import jobs_of
from headrace.jobs.repair import repair

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def declared(home: Path, name: str = "pageviews") -> hr.App:
    app = hr.App(name, home=home)
    views = app.stream(
        "page_views", schema="url string, user string, viewed_at timestamp", key="url", time="viewed_at", watermark=hr.bounded("10 seconds")
    )
    named = views.where("url is not null")
    app.view("per_url", named.window(hr.tumbling("1 minute"), by="url").agg(views="count(*)"))
    app.sink(named.select("url, upper(user) as user"), hr.log("visits"))
    return app


def send(app: hr.App, *views: tuple[str | None, int]) -> None:
    with app.log.producer(acks="all") as producer:
        for url, second in views:
            producer.send("page_views", {"url": url, "user": "ann", "viewed_at": NOON + timedelta(seconds=second)})


def per_url(app: hr.App) -> list[tuple[str, int, int]]:
    rows = app.read("per_url").to_pylist()
    return sorted((row["url"], (row["window_start"] - NOON) // timedelta(minutes=1), row["views"]) for row in rows)


def test_an_app_catches_up_goes_on_and_ends(spark: SparkSession, tmp_path: Path) -> None:
    app = declared(tmp_path)
    assert app.read("per_url").num_rows == 0
    send(app, ("/a", 1), ("/a", 2), ("/b", 3), (None, 4), ("/a", 75))
    report = app.run(until="caught-up")
    assert per_url(app) == [("/a", 0, 2), ("/b", 0, 1)]
    assert report.watermark == NOON + timedelta(seconds=65)
    (kept,) = report.state
    assert (kept["step"], kept["rows"], kept["bytes"] > 0) == ("page_views.where.window", 1, True)
    assert f"; now 1 rows, {kept['bytes']:,} bytes" in str(app.explain())
    send(app, ("/a", 5), ("/b", 80))
    report = declared(tmp_path).run(until="end")
    assert per_url(app) == [("/a", 0, 2), ("/a", 1, 1), ("/b", 0, 1), ("/b", 1, 1)]
    counted = {row["step"]: row for row in report.accounting}
    assert list(counted) == ["page_views", "page_views.where", "page_views.where.window", "page_views.where.select", "per_url",
                             "page_views.where.select.sink"]  # fmt: skip
    assert counted["page_views.where"] == {
        "step": "page_views.where", "in": 7, "out": 6, "late": 0, "duplicate": 0, "filtered": 1, "dead_letter": 0,
        "partly_late": 0, "late_reason": None, "dead_letter_reason": None,
    }  # fmt: skip
    assert "\npage_views.where.window: 1 late (first: every window of the record is closed)" in str(report)
    (listed,) = jobs_of(tmp_path, app.log)
    assert (listed.job, listed.state, listed.epoch, listed.lag, listed.last_error) == (app.name, "stopped", report.epoch, 0, None)
    assert counted["page_views.where.window"]["late"] == 1
    assert [kept["rows"] for kept in report.state] == [0]
    epochs = app.epochs()
    # The last epoch is the end of the input: it fires windows, and has no record for a sink of facts.
    assert app.read("per_url", epoch=epochs.job).num_rows == 4
    assert (epochs.job, epochs.outputs) == (report.epoch, {"per_url": report.epoch, "page_views.where.select.sink": report.epoch - 1})
    late = app.log.read("page_views.late").to_pylist()
    assert [(row["url"], row["viewed_at"], row["window_end"]) for row in late] == [
        ("/a", NOON + timedelta(seconds=5), NOON + timedelta(minutes=1))
    ]
    visits = app.log.read("visits", columns=["url", "user"]).to_pylist()
    assert sorted(row["url"] for row in visits) == ["/a", "/a", "/a", "/a", "/b", "/b"]
    assert {row["user"] for row in visits} == {"ANN"}


def test_a_job_that_began_on_an_empty_topic_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    app = declared(tmp_path)
    assert app.run(until="caught-up").epoch == app.run(until="caught-up").epoch == 1
    send(app, ("/a", 1), ("/a", 75))
    assert app.run(until="caught-up").epoch == 2
    assert per_url(app) == [("/a", 0, 1)]
    assert repair(app.plan(), app.settings) == []
    send(app, ("/b", 76), ("/b", 150))
    assert app.run(until="caught-up").epoch == 3
    assert per_url(app) == [("/a", 0, 1), ("/a", 1, 1), ("/b", 1, 1)]


def test_a_run_without_new_records_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    app = declared(tmp_path)
    send(app, ("/a", 1))
    first, again = app.run(until="end"), app.run(until="end")
    assert again.accounting == first.accounting
    assert app.log.read("visits").num_rows == 1


def test_a_stream_over_a_topic_without_a_time_takes_it_from_the_records(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("clicks", home=tmp_path)
    app.log.create_topic("clicks", partitions=3, schema="url string, at timestamp")
    clicks = app.stream("clicks", schema="url string, at timestamp", time="at", watermark=hr.perfect(idle="1 hour"))
    app.view("clicks_per_minute", clicks.window(hr.tumbling("1 minute")).agg(clicks="count(*)"))
    index = hr.search(tmp_path / "index", key="url")
    app.sink(clicks, index)
    table = pa.table({"url": ["/a", "/b"], "at": pa.array([NOON, NOON + timedelta(minutes=2)])})
    with app.log.producer(acks="all") as producer:
        producer.send_table("clicks", table)
    report = app.run(until="caught-up")
    assert report.watermark == NOON + timedelta(minutes=2)
    assert [row["clicks"] for row in app.read("clicks_per_minute").to_pylist()] == [1]
    assert [row["url"] for row in index.find("b")] == ["/b"]
    assert app.epochs().outputs["clicks.sink"] == report.epoch


def test_sigterm_ends_a_run_that_would_go_on_for_ever(spark: SparkSession, tmp_path: Path) -> None:
    app = declared(tmp_path)
    send(app, ("/a", 1), ("/a", 75))
    stop = threading.Thread(target=_stop_when_read, args=(app,))
    stop.start()
    report = app.run()
    stop.join()
    assert report.epoch >= 1
    assert per_url(app) == [("/a", 0, 1)]


def _stop_when_read(app: hr.App) -> None:
    pause = threading.Event()
    while app.read("per_url").num_rows == 0:
        pause.wait(0.1)
    os.kill(os.getpid(), signal.SIGTERM)


def test_what_a_worker_could_not_do_is_told_as_an_error_of_ours(spark: SparkSession, tmp_path: Path) -> None:
    app = declared(tmp_path)
    send(app, ("/a", 1))
    app.run(until="caught-up")
    app.log.delete_topic("visits")
    send(app, ("/b", 2))
    with pytest.raises(hr.JobError) as stopped:
        _run_without_making_topics(app)
    assert "there is no topic 'visits'" in stopped.value.fact
    (listed,) = jobs_of(tmp_path, app.log)
    assert (listed.state, listed.last_error, listed.lag) == ("failed", stopped.value.fact, 1)


@pytest.mark.parametrize(("records", "tasks"), [(3, ONE), (4, SEVERAL)])
def test_a_run_to_an_end_with_more_to_read_than_one_task_is_for_has_several(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int, tasks: str
) -> None:
    monkeypatch.setenv("HEADRACE_QUICK_ROWS", "3")
    app = declared(tmp_path)
    send(app, *(("/a", 1) for _ in range(records)))
    app.run(until="caught-up")
    plan = JobDirectory(tmp_path, app.name).committed_plan()
    assert plan is not None
    assert plan.tasks == tasks


def _run_without_making_topics(app: hr.App) -> Any:
    from headrace.jobs.start import query_stages

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_stages, "create_outputs", lambda *_: [])
        return app.run(until="caught-up")


def test_spark_reads_the_parquet_files_of_a_sink(spark: SparkSession, tmp_path: Path) -> None:
    for epoch, columns in enumerate(("url string, n bigint", "url string, n bigint, at timestamp"), start=1):
        output = hr.parquet(tmp_path).output(schema(columns), ())
        output.prepare(1)
        frame = pl.DataFrame({"url": ["/a"], "n": [epoch], "at": [NOON]}).select(schema(columns).names)
        output.write(Writer("job", "sink"), epoch, Changes(frame), lambda records, reasons: None)
        output.publish("job", "sink", epoch)
    rows = spark.read.option("mergeSchema", "true").parquet(str(tmp_path)).orderBy("n").selectExpr("n", "at is null").collect()
    assert [tuple(row) for row in rows] == [(1, True), (2, False)]


def test_a_time_that_is_computed_is_the_same_on_spark_and_in_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("clicks", home=tmp_path)
    # The app names two of the topic's columns, in another order.
    app.log.create_topic("clicks", schema="meta struct<ts:bigint>, user string, url string")
    clicks = app.stream(
        "clicks", "url string, meta struct<ts:bigint>", time="timestamp_millis(meta.ts)", watermark=hr.loss_budget(0.01, max="10 seconds")
    )
    kept = clicks.transform(lambda frame: frame.where("url <> '/health'"))
    app.view("per_minute", kept.window(hr.tumbling("1 minute"), by="url").agg(clicks="count(*)"))
    app.sink(clicks.window(hr.tumbling("1 minute"), by="url").agg(clicks="count(*)"), hr.log("counts"), name="counted")
    start = int(NOON.timestamp() * 1000)
    rows = [{"url": url, "meta": {"ts": start + 1_000 * second}} for url, second in (("/", 1), ("/health", 2), ("/", 61), ("/", 130))]
    rows.insert(2, {"url": "/", "meta": None})
    with app.log.producer() as producer:
        for row in rows:
            producer.send("clicks", row)
    report = app.run(until="caught-up")
    assert report.watermark == NOON + timedelta(seconds=120)
    assert sorted((row["url"], row["clicks"], row["window_start"]) for row in app.read("per_minute").to_pylist()) == [
        ("/", 1, NOON), ("/", 1, NOON + timedelta(minutes=1)),
    ]  # fmt: skip
    assert app.log.read("clicks.dead")["reason"].to_pylist() == ["no event time in timestamp_millis(meta.ts)"]
    assert sum(app.log.read("counts")["clicks"].to_pylist()) == 3
    # A column that is added to the topic stops nobody who does not name it.
    app.log.alter_topic("clicks", schema="meta struct<ts:bigint>, user string, url string, referrer string")
    with app.log.producer() as producer:
        producer.send("clicks", {"url": "/", "meta": {"ts": start + 200_000}, "referrer": "/b", "user": "ada"})
    assert app.run(until="caught-up").watermark == NOON + timedelta(seconds=190)
    assert app.read("per_minute").num_rows == 3


def test_records_of_the_first_and_the_last_years_stop_no_job(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("edges", home=tmp_path)
    events = app.stream("events", "at timestamp", time="at", watermark=hr.bounded("0s", max_ahead="3000000 days"))
    app.view("years", events.window(hr.calendar("1 year", zone="UTC")).agg(n="count(*)"))
    app.view("long", events.window(hr.tumbling("3000 days")).agg(n="count(*)"))
    years = [2, 3, 4, 2026, 9997, 9999]
    with app.log.producer(linger=None) as producer:
        producer.send_table("events", pa.table({"at": [datetime(year, 3, 1, tzinfo=UTC) for year in years]}))
    with pytest.warns(hr.PlanWarning, match="accepts times up to 3000000 days ahead"):
        app.run(until="end")
    assert sorted(row["window_start"].year for row in app.read("years").to_pylist()) == years[:-1]
    assert sum(row["n"] for row in app.read("long").to_pylist()) == 1
    letters = [(row["offset"], row["step"], row["reason"]) for row in app.log.read("events.dead").to_pylist()]
    beyond = [(offset, "events.window#2", "its window would reach beyond the years 1 to 9999") for offset in (0, 1, 2, 4)]
    assert sorted(letters) == [*beyond, (5, "events", "at is after the year 9997")]


def test_the_place_of_a_record_is_the_one_that_a_reader_of_its_topic_sees(spark: SparkSession, tmp_path: Path) -> None:
    app = hr.App("places", home=tmp_path)
    app.sink(app.stream("facts", "n int", partitions=3).with_place("place").select("n, place.partition, place.offset"), hr.log("placed"))
    with app.log.producer(acks="all") as producer:
        for n in range(20):
            producer.send("facts", {"n": n})
    app.run(until="end", rows_per_epoch=7)
    read, placed = app.log.read("facts").to_pylist(), app.log.read("placed").to_pylist()
    assert sorted((row["n"], row["partition"], row["offset"]) for row in placed) == sorted(
        (row["n"], row["_partition"], row["_offset"]) for row in read
    )
