"""The parts of chaos: copies of apps that touch nothing, records that fit, faults by a seed, and a comparison that finds differences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.app import apart
from headrace.core.clock import to_microseconds
from headrace.core.columns.schema import schema
from headrace.log.target import LogTopic
from headrace.plan.plan import Sink
from headrace.testing.chaos.comparison import difference
from headrace.testing.chaos.generator import GeneratedStream, Generator
from headrace.testing.chaos.kinds import KINDS, POINTS, drawn
from headrace.testing.chaos.oracle import check_that_it_can_be_replayed
from headrace.testing.faults import FAILPOINTS

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVERY_TYPE = (
    "at timestamp, b boolean, t tinyint, s smallint, i int not null, l bigint, f float, d double, text string, raw binary, day date, "
    "local timestamp_ntz, money decimal(20,4), tags array<string>, pair struct<a:int,b:string>, counts map<string,int>"
)


def declared(home: Path) -> hr.App:
    app = hr.App("copied", home=home)
    events = app.stream(
        "events", schema=EVERY_TYPE, time="at", watermark=hr.bounded("10 seconds"), source=hr.kafka("events", servers="127.0.0.1:1")
    )
    app.sink(events.select("i, text"), hr.http("https://example.org/alerts"))
    app.sink(events.group("text", ttl=None).agg(n="count(*)"), hr.postgres("t", dsn="postgresql://127.0.0.1:1/x"), name="table")
    app.sink(events.select("i"), hr.log("numbers"))
    return app


def test_a_copy_lives_apart_and_has_topics_in_place_of_other_systems(tmp_path: Path) -> None:
    with apart(tmp_path / "apart"):
        copy = declared(tmp_path / "home")
    plan = copy.plan()
    assert copy.settings.home == tmp_path / "apart"
    assert [source.connector for source in plan.sources] == [None]
    assert copy.log.topic("events").columns == schema(EVERY_TYPE)
    targets = [output.target for output in plan.outputs if isinstance(output, Sink)]
    assert all(isinstance(target, LogTopic) for target in targets)
    assert [str(target) for target in targets] == ["topic in-place-of-sink-1", "topic in-place-of-sink-2", "topic numbers"]
    assert [output.folds_by for output in plan.outputs] == [(), ("text",), ()]
    assert not (tmp_path / "home").exists()
    original = declared(tmp_path / "home")
    assert original.plan().sources[0].connector is not None


def test_records_are_those_of_their_seed_fit_every_type_and_some_are_late(tmp_path: Path) -> None:
    with apart(tmp_path):
        (source,) = declared(tmp_path).plan().sources
    begins_at = to_microseconds(NOON)
    first, again, other = (GeneratedStream(source, seed, begins_at).take(1_000) for seed in (1, 1, 2))
    assert first.schema == source.columns
    assert first.equals(again)
    assert not first.equals(other)
    assert first["i"].null_count == 0
    times = [time for time in first["at"].to_pylist() if time is not None]
    late = sum(time < NOON for time in times)
    assert 0 < late < 0.05 * len(times)
    assert max(times) - NOON <= timedelta(milliseconds=200 * 1_000)
    assert times != sorted(times)


def test_the_generator_counts_what_the_log_has(tmp_path: Path) -> None:
    with apart(tmp_path):
        app = declared(tmp_path)
    generator = Generator(app.log, app.plan().sources, rate=100, seed=1)
    generator.start()
    while not generator.sent["events"]:
        generator.join(0.01)
    generator.stop()
    assert app.log.read("events").num_rows == generator.sent["events"]


def test_faults_are_drawn_from_a_seed_and_name_failpoints_that_there_are() -> None:
    def campaign(seed: int) -> list[str]:
        return [str(fault) for fault in islice(drawn(tuple(KINDS), seed), 5 * len(KINDS))]

    assert campaign(1) == campaign(1) != campaign(2)
    # Few faults are of many kinds.
    assert {fault.split()[0] for fault in campaign(1)[: len(KINDS)]} == set(KINDS)
    assert set(POINTS) <= set(FAILPOINTS)
    assert str(next(drawn(("failpoint:state.change.after",), 1))).startswith("failpoint state.change.after=kill@")
    with pytest.raises(hr.SettingsError, match="there is no fault 'flood'"):
        next(drawn(("worker", "flood"), 1))


def test_an_app_with_a_step_that_only_spark_evaluates_is_refused_by_its_name(tmp_path: Path) -> None:
    app = hr.App("odd", home=tmp_path)
    events = app.stream("events", schema="text string")
    app.sink(events.where("soundex(text) is not null"), hr.log("out"))
    with pytest.raises(hr.PlanError, match=r"events\.where"):
        check_that_it_can_be_replayed(app)


def test_rows_that_are_missing_and_rows_that_are_there_twice_are_counted() -> None:
    wanted = [{"n": 1, "x": float("nan")}, {"n": 2, "x": None}, {"n": 2, "x": None}]
    same = pa.Table.from_pylist(wanted[::-1], schema=schema("n int, x double"))
    assert difference("out", wanted, same).whole
    lost = difference("out", wanted, same.slice(1))
    assert (lost.lost, lost.duplicated, lost.whole) == (1, 0, False)
    twice = difference("out", wanted, pa.concat_tables([same, same.slice(0, 1)]))
    assert (twice.expected, twice.found, twice.lost, twice.duplicated) == (3, 4, 0, 1)
