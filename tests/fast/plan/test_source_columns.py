"""A topic has more columns than an app needs: which differences between the two matter, and which do not."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr
from headrace.connectors.log.input import LogInput
from headrace.core.columns.schema import declared
from headrace.jobs.start.outputs import create_outputs

TOPIC = "url string, user string not null, at timestamp(ms), price decimal(10,2)"


def app(home: Path, columns: str, name: str = "clicks") -> hr.App:
    made = hr.App(name, home=home)
    clicks = made.stream("clicks", columns, time="at" if "at timestamp" in columns else None,
                         watermark=hr.bounded("10 seconds") if "at timestamp" in columns else None)  # fmt: skip
    made.sink(clicks, hr.log(f"out-of-{name}"))
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    hr.App("other", home=tmp_path).log.create_topic("clicks", schema=TOPIC, config={"message.timestamp.after.max.ms": -1})
    return tmp_path


@pytest.mark.parametrize(
    "columns", ["url string", "at timestamp, url string", "user string, at timestamp(ms)", "user string not null", TOPIC]
)
def test_an_app_may_name_any_columns_of_a_topic_in_any_order(home: Path, columns: str) -> None:
    made = app(home, columns)
    with made.log.producer() as producer:
        producer.send("clicks", {"url": "/", "user": "ada", "at": 1_767_268_800_000})
    (source,) = made.plan().sources
    (batch,) = LogInput(made.log.path, "clicks", tuple(source.columns.names), None).read(0, 0, 1)
    assert [name for name in batch.schema.names if not name.startswith("_")] == source.columns.names


def test_a_column_that_is_added_stops_nobody(home: Path) -> None:
    made = app(home, "url string")
    made.log.alter_topic("clicks", schema=f"{TOPIC}, referrer string")
    assert app(home, "url string").plan().sources == made.plan().sources


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("url string, link string", "column 'link' of stream 'clicks' is not in its topic"),
        ("url int", "column 'url' of stream 'clicks' is declared as int, and is string in its topic"),
        ("price decimal(12,2)", "column 'price' of stream 'clicks' is declared as decimal(12,2), and is decimal(10,2) in its topic"),
        ("url string not null", "column 'url' of stream 'clicks' is declared NOT NULL, and may be null in its topic"),
        ("at timestamp(s)", "column 'at' of stream 'clicks' is declared as timestamp(s), and its topic takes timestamp(ms)"),
    ],
)
def test_a_column_that_the_topic_does_not_have_is_refused_by_name(home: Path, columns: str, problem: str) -> None:
    with pytest.raises(hr.PlanError) as refused:
        app(home, columns)
    assert refused.value.fact == problem
    assert f"the topic has {declared(hr.Log(home / 'log').topic('clicks').columns)}" in str(refused.value)
    assert refused.value.where is not None
    assert "test_source_columns.py" in refused.value.where


def test_a_topic_that_lost_a_column_stops_the_apps_that_name_it(home: Path) -> None:
    made = app(home, "url string, price decimal(10,2)")
    made.log.delete_topic("clicks")
    made.log.create_topic("clicks", schema="url string")
    assert app(home, "url string").plan().sources[0].columns.names == ["url"]
    with pytest.raises(hr.PlanError, match="column 'price' of stream 'clicks' is not in its topic"):
        app(home, "url string, price decimal(10,2)")


def test_late_records_of_two_apps_with_different_columns_share_a_topic(home: Path) -> None:
    one, other = app(home, "url string, at timestamp"), app(home, "user string not null, at timestamp(ms)", "users")
    create_outputs(one.log, one.plan(), 1)
    create_outputs(other.log, other.plan(), 1)
    create_outputs(one.log, one.plan(), 1)
    names = one.log.topic("clicks.late").columns.names
    assert names == ["url", "at", "step", "reason", "watermark", "window_start", "window_end", "user"]
