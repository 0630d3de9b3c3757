"""Pitfalls that are refused when an app is planned, with the reason and what to do."""

from __future__ import annotations

import ast
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import count_window, global_, loss_budget, perfect, processing_time, session, sliding, tumbling
from headrace.core.errors import HeadraceError, PlanError, SchemaError
from headrace.log.target import LogTopic
from headrace.plan.reserved import reserved


def planned(declare: Callable[[Stream, Stream], Stream]) -> None:
    app = Declaration("pitfalls")
    timed = app.stream("clicks", "page string, at timestamp", time="at", watermark=perfect())
    timeless = app.stream("pages", "page string, place string")
    app.view("results", declare(timed, timeless))
    app.plan()


@pytest.mark.parametrize(
    ("declare", "said", "hint"),
    [
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(until="1h")
            .where("n > 1").window(session("5m"), by="page").agg(n="count(*)"),
            "session windows over 'clicks.window.where', whose results change", "leave out until=",
        ),
        (lambda clicks, _: clicks.window(session("1m"), by="page").agg(n="count(*)").emit(early="5s", mode="accumulating"),
         "accumulating panes of the sessions", "retracting"),
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(until="1h")
            .window(tumbling("1h")).agg(n="sum(n)").emit(early="5m", mode="discarding"),
            "discarding panes over 'clicks.window', whose results change", "retracting",
        ),
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(early="5s", mode="accumulating")
            .select("page, window_start, n").group("page", ttl=None).agg(n="sum(n)"),
            "whose panes repeat the content of earlier ones", "retracting",
        ),
        (lambda clicks, _: clicks.window(sliding("1m"), by="page").agg(n="count(*)").emit(early="5s"), "no early pane", "until"),
        (lambda clicks, _: clicks.window(count_window(9), by="page").agg(n="count(*)").emit(until="1h"), "emits when it is full", "leave"),
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(until="1h")
            .window(sliding("1h")).agg(n="sum(n)"),
            "sliding windows over 'clicks.window', whose results change", "to_stream",
        ),
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(every=10, mode="accumulating").where("n = 1"),
            "whose panes repeat the content of earlier ones", "discarding",
        ),
        (lambda clicks, _: clicks.group("page", ttl=None).agg(n="count(*)").window(tumbling("1m")).agg(n="sum(n)"),
         "windows over the table 'clicks.group'", "to_stream"),
        (lambda clicks, _: clicks.to_table("page").where("page != ''").window(tumbling("1m")).agg(n="count(*)"),
         "windows over the table 'clicks.table'", "to_stream"),
        (lambda clicks, _: clicks.to_table("page").where("at > now()"), "has a different value each time, over results", "to_stream"),
        (lambda clicks, _: clicks.group("page", ttl=None).agg(n="count(*) + cast(rand() as int)"), "evaluates 'n'", "to_stream"),
        (
            lambda clicks, _: clicks.window(global_(), by="page").agg(n="count(*)").emit(every=1)
            .where("n > 1").window(tumbling("1m")).agg(n="sum(n)"),
            "windows over 'clicks.window', which is one window for all time", "to_stream",
        ),
        (lambda clicks, _: clicks.window(global_()).agg(n="count(*)").emit(early="1m", mode="discarding")
         .window(count_window(2)).agg(n="sum(n)"), "one window for all time", "hr.tumbling"),
        (lambda clicks, _: clicks.window(global_(), by="page").agg(n="count(*)").emit(every=1, mode="discarding").dedup("page", ttl="1m"),
         "one window for all time", "hr.tumbling"),
        (lambda _, pages: pages.group("page", ttl=None).agg(place="last(place)"), "last.place. over 'pages', which has no event", "max_by"),
        (lambda _, pages: pages.group("page", ttl=None).agg(place="any_value(place)"), "any_value.place. over 'pages'", "max_by"),
        (lambda _, pages: pages.group("page", ttl="1 day").agg(n="count(*)"), "'pages' has no event time", "ttl=None"),
        (lambda _, pages: pages.to_table("page", ttl="1 day"), "'pages' has no event time", "ttl=None"),
        (lambda _, pages: pages.dedup("page", ttl="1 day").to_table("page"), "'pages' has no event time", "ttl=None"),
        (lambda clicks, _: clicks.to_table("page").dedup("page", ttl="1 day"),
         "duplicates among 'clicks.table', whose results change", "to_stream"),
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(early="5s", mode="accumulating")
            .dedup("page", ttl="1 day"),
            "whose panes repeat the content of earlier ones", "discarding",
        ),
        (
            lambda clicks, _: clicks.window(processing_time("1m"), by="page").agg(n="count(*)").emit(until="1h"),
            "processing time with early= or until=", "leave them out",
        ),
        (lambda clicks, _: clicks.to_table("page").window(processing_time("1m")).agg(n="count(*)"), "over the table", "to_stream"),
        (lambda clicks, _: clicks.window(processing_time("1m")).agg(n="first(page)"), "with first or last", "min_by"),
        (lambda clicks, _: clicks.window(processing_time("1m")).agg(n="count(*)").window(tumbling("1m")).agg(n="sum(n)"),
         "has windows but no watermark", "watermark="),
        (lambda clicks, _: clicks.dedup("page"), r"dedup\('page'\) of 'clicks' has no ttl", "ttl=None"),
        (lambda clicks, _: clicks.distinct(), r"distinct\(\) of 'clicks' has no ttl", "ttl=None"),
        (lambda _, pages: pages.with_previous(by="page", ttl=None).to_table("page"), "'pages', which has no event time", "watermark="),
        (lambda clicks, _: clicks.to_table("page").with_previous(by="page", ttl=None),
         "previous records of 'clicks.table', whose results change", "to_stream"),
        (lambda clicks, _: clicks.with_previous(by="page"), "has no ttl", "ttl=None"),
        (lambda clicks, _: clicks.top(3, by="at").to_table("page"), "top 3 of 'clicks': nothing tells its records apart", "to_table"),
        (lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").top(3, by="n"),
         "top 3 of 'clicks.window': its results never expire", 'per="window"'),
        (lambda clicks, _: clicks.window(session("1m"), by="page").agg(n="count(*)").top(3, by="n", per="window_start"),
         "its results never expire", "to_table"),
        (lambda clicks, _: clicks.group("page", ttl=None).agg(n="count(*)").top(0, by="n"), "keeps no row", "above zero"),
        (lambda clicks, _: clicks.dedup([], ttl="1 day"), "compares nothing", "name a key"),
        (lambda clicks, _: clicks.dedup("page", ttl="0s"), "compares nothing", "above zero"),
        (lambda clicks, _: clicks.group("page", ttl="0s").agg(n="count(*)"), "ttl of 'clicks.group' is 0 seconds", "above zero"),
        (lambda clicks, _: clicks.with_previous(by="page", ttl=timedelta(seconds=-5)).to_table("page"), "is -5 seconds", "above zero"),
        (lambda clicks, _: clicks.to_table("page", ttl="0s"), "ttl of 'clicks.table'", "above zero"),
        (lambda clicks, _: clicks.process(lambda event: event, by="page", ttl="0s").to_table("page"), "ttl of 'clicks.process'", "above"),
        (lambda clicks, _: clicks.with_columns(parts="split(page, '/')").group("parts", ttl=None).agg(n="count(*)"),
         "key 'parts' of 'clicks.with_columns.group' is array<string>", "with_columns"),
        (lambda clicks, _: clicks.with_columns(both="struct(page, at)").window(session("1m"), by="both").agg(n="count(*)"),
         "key 'both' of .* is struct", "with_columns"),
        (lambda clicks, _: clicks.with_columns(_time="'noon'").to_table("page"), "has a column '_time'", "'time'"),
        (lambda clicks, _: clicks.with_columns(**{"*": "1"}).to_table("page"), r"has a column '\*'", "another name"),
        (lambda clicks, _: clicks.with_columns(**{"^p.*$": "1"}).to_table("page"), r"has a column '\^p\.\*\$'", "another name"),
        (lambda clicks, _: clicks.flat_map("split(page, '/')", into="").to_table("page"), "has a column ''", "another name"),
        (lambda clicks, _: clicks.with_columns(n="null").to_table("page"), "column 'n' of 'clicks.with_columns' has no type", "cast(null"),
        (lambda clicks, _: clicks.group("page", ttl=None).agg(_a0="count(*)"), "'clicks.group' has a column '_a0'", "'a0'"),
        (lambda clicks, _: clicks.with_columns(parts="split(page, '/')").distinct(ttl="1h"), "'parts' is array<string>", "no arrays"),
    ],
)  # fmt: skip
def test_a_pitfall_is_refused_with_its_remedy(declare: Callable[[Stream, Stream], Stream], said: str, hint: str) -> None:
    with pytest.raises(PlanError, match=said) as error:
        planned(declare)
    assert error.value.why
    assert hint in str(error.value.hint)
    assert "test_checks.py" in str(error.value.where)


@pytest.mark.parametrize(
    "declare",
    [
        lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").window(session("5m"), by="page").agg(n="sum(n)"),
        lambda clicks, _: clicks.group("page", ttl="1 day").agg(last="last(at)"),
        lambda clicks, _: clicks.group("page", ttl=None).agg(n="count(*)").to_stream().window(tumbling("1m"), by="page").agg(n="count(*)"),
        lambda _, pages: pages.group("page", ttl=None).agg(n="count(*)", place="max_by(place, page)"),
        lambda _, pages: pages.dedup("page", ttl=None),
        lambda clicks, _: (
            clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(early="5s", mode="accumulating").top(3, by="n", per="window")
        ),
        lambda clicks, _: clicks.window(session("1m"), by="page").agg(n="count(*)").to_table("page").top(3, by="n"),
        lambda clicks, _: clicks.dedup("page", ttl="1 day").with_previous("at", by="page", ttl="1 day").to_table("page"),
        lambda clicks, _: clicks.window(global_(), by="page").agg(n="count(*)").emit(every=9).group("n", ttl=None).agg(pages="count(*)"),
        lambda clicks, _: clicks.to_table("page").to_stream().dedup("page", ttl="1 day").to_table("page"),
        lambda clicks, _: clicks.with_columns(_id="page", _class="1").group("_id", ttl=None).agg(_total="count(*)"),
    ],
)
def test_what_is_near_a_pitfall_but_sound_is_taken(declare: Callable[[Stream, Stream], Stream]) -> None:
    planned(declare)


def test_a_sink_that_cannot_take_retractions_is_refused_when_planned() -> None:
    def app(**emit: str) -> Declaration:
        declared = Declaration("sinks")
        clicks = declared.stream("clicks", "page string, at timestamp", time="at", watermark=perfect())
        declared.sink(clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(**emit), LogTopic("minutes", append_only=True))
        return declared

    with pytest.raises(PlanError, match="replaced or retracted later") as error:
        app(until="1h").plan()
    assert error.value.why
    assert "to_stream" in str(error.value.hint)
    assert "test_checks.py" in str(error.value.where)
    for emit in ({}, {"until": "1h", "mode": "discarding"}, {"early": "5s", "mode": "accumulating"}):
        app(**emit).plan()


@pytest.mark.parametrize(
    ("emit", "said"),
    [
        ({"late": "5m"}, "late='5m' without until="),
        ({"late": None, "until": "1h"}, "late=None with until="),
        ({"mode": "both"}, "mode='both' is not known"),
        ({"every": 0}, "every=0 is not a number of records"),
        ({"early": "0s"}, "early=0 seconds is not a time"),
    ],
)
def test_panes_that_cannot_be_are_refused(emit: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        planned(lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(**emit))


@pytest.mark.parametrize(
    ("watermark", "other", "said", "hint"),
    [
        (perfect(), None, "'clicks' is aligned with nothing", "leave out align="),
        (perfect(), perfect(), "aligned with 'views', which is never idle", "idle="),
        (None, perfect(idle="1m"), "'clicks' is aligned with nothing", "leave out align="),
    ],
)
def test_an_alignment_that_could_stop_a_stream_is_refused(watermark: Any, other: Any, said: str, hint: str) -> None:
    app = Declaration("aligned")
    clicks = app.stream("clicks", "page string, at timestamp", time="at" if watermark else None, watermark=watermark, align="1m")
    streams = [clicks, *([app.stream("views", "page string, at timestamp", time="at", watermark=other)] if other else [])]
    app.view("pages", streams[0].union(*streams[1:]).group("page", ttl=None).agg(n="count(*)"))
    with pytest.raises(PlanError, match=said) as error:
        app.plan()
    assert hint in str(error.value.hint)
    assert error.value.why


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda clicks: clicks.to_table(["page", "page"]), "key names 'page' twice"),
        (lambda clicks: clicks.dedup(["page", "page"], ttl="1h").to_table("page"), "dedup by names 'page' twice"),
        (lambda clicks: clicks.to_table("page").top(1, by="at", per=["page", "page"]), "top per names 'page' twice"),
        (lambda clicks: clicks.group(["page", "page"], ttl=None), "group by names 'page' twice"),
        (lambda clicks: clicks.score(len, inputs=["page", "page"]), "score input names 'page' twice"),
        (lambda clicks: clicks.group([], ttl=None).agg(n="count(*)"), r"group\(\) of 'clicks' has no key"),
        (lambda clicks: clicks.to_table([]), r"to_table\(\) of 'clicks' has no key"),
        (lambda clicks: clicks.group(7, ttl=None), "7 names no columns"),
        (lambda clicks: clicks.group("pag", ttl=None), "'clicks' has no such column"),
        (lambda clicks: clicks.window("1 minute", by="page"), r"window\('1 minute'\) is not a window"),
        (lambda clicks: clicks.window(tumbling("0s")), "holds no time"),
        (lambda clicks: clicks.window(tumbling("5 parsecs")), "'5 parsecs' is not a duration"),
        (lambda clicks: clicks.window(tumbling("1m")).agg(n="count(*)").emit(every="10 seconds"), "every='10 seconds' is not a number"),
        (lambda clicks: clicks.window(tumbling("1m")).agg(n="count(*)").emit(mode="all"), "mode='all' is not known"),
        (lambda clicks: clicks.window(tumbling("1m")).agg(n=3), "3 is not an expression"),
        (lambda clicks: clicks.where(3), "3 is not an expression"),
        (lambda clicks: clicks.window(count_window("5")), "'5' records every '5' holds nothing"),
        (lambda clicks: clicks.to_table("page").top(2.5, by="at"), r"top\(2.5, by='at'\)"),
        (lambda clicks: clicks.window(count_window(True)), "True records every True holds nothing"),
        (lambda clicks: clicks.window(count_window(5, every=True)), "5 records every True holds nothing"),
        (lambda clicks: clicks.window(tumbling("1m")).agg(n="count(*)").emit(every=True), "every=True is not a number of records"),
        (lambda clicks: clicks.to_table("page").top(True, by="at"), r"top\(True, by='at'\)"),
        (lambda _: loss_budget("x", max="5 minutes"), "a loss budget of 'x' is not a share of the records"),
        (lambda _: loss_budget(True, max="5 minutes"), "a loss budget of True is not a share of the records"),
        (lambda clicks: clicks.to_table("page", ttl="soon"), "'soon' is not a duration"),
        (lambda _: perfect(max_ahead=timedelta(seconds=-1)), "max_ahead=-1 second"),
    ],
)
def test_a_slip_is_refused_at_the_line_that_makes_it(declare: Callable[[Any], Any], said: str) -> None:
    app = Declaration("slips")
    clicks = app.stream("clicks", "page string, at timestamp", time="at", watermark=perfect())
    line = declare.__code__.co_firstlineno

    def planned() -> None:
        app.view("results", declare(clicks))
        app.plan()

    with pytest.raises(HeadraceError, match=said) as error:
        planned()
    assert error.value.where == f"{__file__}:{line}"


@pytest.mark.parametrize("of_page", [lambda rows: rows.to_table("page"), lambda rows: rows], ids=["table", "key of the view"])
def test_the_latest_of_changing_rows_that_nothing_tells_apart_is_refused_when_planned(of_page: Callable[[Stream], Stream]) -> None:
    app = Declaration("parts")
    clicks = app.stream("clicks", "page string, at timestamp", time="at", watermark=perfect())
    counts = clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(until="1h")
    app.view("pages", of_page(counts.flat_map("array(1, 2)", into="part")), key="page")
    with pytest.raises(PlanError, match=r"the latest of 'clicks\.window\.flat_map' by page: its records change") as error:
        app.plan()
    assert error.value.why
    assert "before the table is made" in str(error.value.hint)
    assert "test_checks.py" in str(error.value.where)


def test_a_stream_says_at_its_line_what_it_cannot_be() -> None:
    app = Declaration("streams")
    with pytest.raises(PlanError, match="key 'tags' of stream 'posts' is array<string>") as error:
        app.stream("posts", "tags array<string>", key="tags")
    assert "test_checks.py" in str(error.value.where)
    with pytest.raises(PlanError, match="watermark='30 seconds' of stream 'posts' is not a watermark") as error:
        app.stream("posts", "at timestamp", time="at", watermark="30 seconds")  # type: ignore[arg-type]
    assert "hr.bounded" in str(error.value.hint)
    with pytest.raises(SchemaError, match="'strng' is not a type") as schema_error:
        app.stream("posts", "page strng")
    assert "test_checks.py" in str(schema_error.value.where)


@pytest.mark.parametrize("name", ["clicks", "clicks.group", "clicks.late", "clicks.dead", "names.accounting", "names.hot-keys"])
def test_an_output_has_a_name_of_its_own(name: str) -> None:
    app = Declaration("names")
    clicks = app.stream("clicks", "page string, at timestamp", time="at", watermark=perfect())
    app.view(name, clicks.group("page", ttl=None).agg(n="count(*)"))
    with pytest.raises(PlanError, match=f"view '{name}' has the name of a stream, a step or a topic") as error:
        app.plan()
    assert error.value.why
    assert "test_checks.py" in str(error.value.where)


def test_an_aggregation_that_is_emitted_in_two_ways_is_written_twice() -> None:
    app = Declaration("twice")
    clicks = app.stream("clicks", "page string, at timestamp", time="at", watermark=perfect())
    minutes = clicks.window(tumbling("1m"), by="page").agg(n="count(*)")
    app.view("final", minutes)
    app.view("early", minutes.emit(early="5s"))
    with pytest.raises(PlanError, match="two steps are called") as error:
        app.plan()
    assert error.value.why
    assert "again before the other emit" in str(error.value.hint)
    assert "test_checks.py" in str(error.value.where)


def test_every_name_that_operators_give_a_column_is_reserved() -> None:
    folder = Path(reserved.__code__.co_filename).parent.parent / "operators"
    files = [*folder.rglob("*.py"), *(folder.parent / "engine").rglob("*.py")]
    trees = [ast.parse(file.read_text()) for file in files]
    texts = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = {text for text in texts if text.startswith("_") and text[1:].isidentifier() and text.islower() and text[1] != "_"}
    assert len(names) > 40
    assert {name for name in names if not reserved(name)} == set()
