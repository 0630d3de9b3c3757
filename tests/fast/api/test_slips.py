"""Slips of the hand in a declaration are refused at the line that has them, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.api.stream import Stream
from headrace.api.windows import bounded, hopping, tumbling
from headrace.app import App
from headrace.connectors.delta.declaration import delta
from headrace.connectors.kafka.declaration import kafka
from headrace.connectors.registered import connector
from headrace.core.errors import HeadraceError, PlanError
from headrace.core.where import says_where
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver

SLIPS: list[tuple[str, Callable[[App, Stream], object]]] = [
    ("'a/b' is not a topic name", lambda app, _: app.stream("a/b", "n int")),
    ("topic 't' with 0 partitions", lambda app, _: app.stream("t", "n int", partitions=0)),
    ("topic 't' with True partitions", lambda app, _: app.stream("t", "n int", partitions=True)),
    ("topic 't' with '4' partitions", lambda app, _: app.stream("t", "n int", partitions="4")),  # type: ignore[arg-type]
    ("'a/b' is not a view name", lambda app, views: app.view("a/b", views.to_table("url"))),
    ("'a/b' is not a topic name", lambda app, views: app.sink(views, LogTopic("a/b"))),
    ("compact_every=True is not a number", lambda app, views: app.sink(views, delta("lake", compact_every=True))),
    ("'' is not an app name", lambda app, _: App("", settings=app.settings)),
    ("'über' is not an app name", lambda app, _: App("über", settings=app.settings)),
    ("view 'v' of Windowed, which is neither a stream nor a table", lambda app, views: app.view("v", views.window(tumbling("1m")))),  # type: ignore[arg-type]
    ("a sink to topic t of Grouped, which is neither", lambda app, views: app.sink(views.group("url", ttl=None), LogTopic("t"))),  # type: ignore[arg-type]
    ("with one of int, which is neither a stream nor a table", lambda _, views: views.union(5)),  # type: ignore[arg-type]
    ("in the place of a view's name", lambda app, views: app.view(views, "v")),  # type: ignore[arg-type]
    ("in the place of a target", lambda app, views: app.sink(LogTopic("t"), views)),  # type: ignore[arg-type]
    ("stream\\(...\\) has no option 'tme'", lambda app, _: app.stream("t", "at timestamp", tme="at")),  # type: ignore[call-arg]
    ("hopping\\(...\\): missing a required argument: 'every'", lambda *_: hopping("1 hour")),  # type: ignore[call-arg]
    ("hopping\\(...\\): too many positional arguments", lambda *_: hopping("1 hour", "1 minute")),  # type: ignore[call-arg]
    ("App\\(...\\) has no option 'hom'", lambda *_: App("other", hom="x")),  # type: ignore[call-arg]
    ("TestDriver\\(...\\) has no option 'start_at'", lambda app, _: TestDriver(app, start_at="2026")),  # type: ignore[call-arg]
    ("count\\(\\*\\) counts records, and cuont\\(\\*\\) is not", lambda _, views: views.group("url", ttl=None).agg(n="cuont(*)")),
    ("there is no connector 'kafak'", lambda *_: connector("kafak")),
    ("kafka\\(...\\): missing a required argument: 'servers'", lambda *_: kafka("t")),  # type: ignore[call-arg]
    ("without a column", lambda _, views: views.select()),
    ("without a column", lambda _, views: views.key_by()),
    ("transform\\('x'\\) is not a function", lambda _, views: views.transform("x")),  # type: ignore[arg-type]
    ("'sequence\\(1, n\\)': only Spark knows its type", lambda _, views: views.flat_map("sequence(1, n)", "a")),
    ("`url` is not an array", lambda _, views: views.explode("url")),
    ("a window function reads many rows", lambda _, views: views.where("sum(n) over (partition by url) > 1")),
    ("an ordered aggregate reads many", lambda _, views: views.where("percentile_cont(0.5) within group (order by n) > 1")),
    ("until='ever' is not known", lambda app, views: (app.view("v", views.to_table("url")), app.run(until="ever"))),
    ("rows_per_epoch=0 reads nothing", lambda app, views: (app.view("v", views.to_table("url")), app.run(rows_per_epoch=0))),
    ("rows_per_epoch=True reads nothing", lambda app, views: (app.view("v", views.to_table("url")), app.run(rows_per_epoch=True))),
]


@pytest.mark.parametrize(("fact", "declare"), SLIPS, ids=[fact for fact, _ in SLIPS])
def test_a_slip_is_refused_with_a_hint_and_the_users_line(tmp_path: Path, fact: str, declare: Callable[[App, Stream], object]) -> None:
    app = App("slips", home=tmp_path)
    views = app.stream("views", "url string, n int, at timestamp", time="at", watermark=bounded("10s"))
    with pytest.raises(HeadraceError, match=fact) as error:
        declare(app, views)
    assert error.value.hint
    assert "test_slips.py" in str(error.value.where)


MISSPELLED: list[tuple[str, Callable[[App, Stream], object]]] = [
    ("url", lambda app, _: app.stream("t", "url string", key="ulr")),
    ("url", lambda _, views: views.window(tumbling("1m"), by="ulr")),
    ("url", lambda app, views: app.view("v", views, key="ulr")),
    ("time", lambda app, _: app.stream("t", "at timestamp", tme="at")),  # type: ignore[call-arg]
    ("string", lambda app, _: app.stream("t", "url strng")),
    ("clicks", lambda app, _: (app.log.create_topic("clicks"), app.log.read("click"))),
    ("per_url", lambda app, views: (app.view("per_url", views.to_table("url")), app.read("per_ulr"))),
    ("retracting", lambda _, views: views.window(tumbling("1m"), by="url").agg(n="count(*)").emit(mode="retract")),
]


@pytest.mark.parametrize(("meant", "declare"), MISSPELLED)
def test_a_misspelled_name_is_refused_with_the_nearest_known_one(
    tmp_path: Path, meant: str, declare: Callable[[App, Stream], object]
) -> None:
    app = App("slips", home=tmp_path)
    views = app.stream("views", "url string, n int, at timestamp", time="at", watermark=bounded("10s"))
    with pytest.raises(HeadraceError) as error:
        declare(app, views)
    assert f"did you mean {meant!r}?" in str(error.value.hint)


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("filter", 'write where("'),
        ("groupby", "write group("),
        ("withColumn", "write with_columns("),
        ("url", 'as text: where("url is not'),
    ],
)
def test_a_name_of_pyspark_or_a_column_as_an_attribute_is_answered_with_what_to_write(tmp_path: Path, name: str, here: str) -> None:
    views = App("slips", home=tmp_path).stream("views", "url string")
    assert not hasattr(views, name)
    with pytest.raises(AttributeError, match=re.escape(here)):
        getattr(views, name)


def test_windows_and_groups_have_no_step_before_their_aggregates(tmp_path: Path) -> None:
    views = App("slips", home=tmp_path).stream("views", "url string, at timestamp", time="at", watermark=bounded("10s"))
    for unfinished in (views.window(tumbling("1m")), views.group("url", ttl=None)):
        with pytest.raises(AttributeError, match=r"has no where: say first what to compute, \.agg\("):
            getattr(unfinished, "where")  # noqa: B009 - for mypy there is no such attribute
    with pytest.raises(AttributeError, match="only windows have several results"):
        getattr(views, "emit")  # noqa: B009


def test_streams_and_apps_show_their_names_and_columns(tmp_path: Path) -> None:
    app = App("slips", home=tmp_path)
    views = app.stream("views", "url string")
    assert (repr(app), repr(views), repr(views.to_table("url"))) == (
        "<App 'slips'>", "<Stream 'views': url string>", "<Table 'views.table': url string>",
    )  # fmt: skip


def test_a_type_error_inside_a_function_of_the_api_is_not_taken_for_a_wrong_call() -> None:
    @says_where
    def fails(number: int) -> int:
        return number + "a"  # type: ignore[operator]

    with pytest.raises(TypeError, match="unsupported operand"):
        fails(1)


def test_a_column_takes_the_place_of_one_that_differs_in_case_alone(tmp_path: Path) -> None:
    views = App("cases", home=tmp_path).stream("views", "url string, n int")
    assert views.with_columns(N="n + 1").columns.names == ["url", "N"]


def test_what_a_run_refuses_is_not_explained(tmp_path: Path) -> None:
    app = App("changes", home=tmp_path)
    latest = app.stream("prices", "item string, shop string, price int").to_table(["item", "shop"])
    app.view("shops", latest.group("item", ttl=None).agg(shops="approx_count_distinct(shop)"))
    with pytest.raises(PlanError, match=r"approx_count_distinct\(shop\) over 'prices.table', whose results change"):
        app.explain()
