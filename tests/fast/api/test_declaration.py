"""Declaring: what cannot work is refused at the line that says it, before anything runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, hopping, session, tumbling
from headrace.core.errors import PlanError


def views(app: Declaration) -> Stream:
    return app.stream("views", schema="url string, ms int, tags array<string>, at timestamp", time="at", watermark=bounded("10s"))


REFUSED: list[tuple[str, Callable[[Declaration], object]]] = [
    ("time but no watermark", lambda app: app.stream("v", schema="at timestamp", time="at")),
    ("watermark but no time", lambda app: app.stream("v", schema="at timestamp", watermark=bounded("1s"))),
    ("time 'url' of stream 'v' is string", lambda app: app.stream("v", schema="url string", time="url", watermark=bounded("1s"))),
    ("key 'uri'", lambda app: app.stream("v", schema="url string", key="uri")),
    ("windows but no watermark", lambda app: app.stream("v", schema="url string").window(tumbling("1 minute"))),
    ("declared twice", lambda app: (views(app), views(app))),
    ("no ttl", lambda app: views(app).group("url")),
    ("leave gaps", lambda app: views(app).window(hopping("1 minute", every="2 minutes"))),
    ("ends every session at once", lambda app: views(app).window(session("0s"))),
    ("nothing tells the records", lambda app: app.view("all", views(app).where("ms > 1"))),
    ("not a condition", lambda app: views(app).where("ms + 1")),
    ("not an array", lambda app: views(app).flat_map("url", into="tag")),
    ("agg\\(\\) without", lambda app: views(app).window(tumbling("1 minute")).agg()),
    ("sum of string", lambda app: views(app).window(tumbling("1 minute")).agg(total="sum(url)")),
    ("two columns 'url'", lambda app: views(app).window(tumbling("1 minute"), by="url").agg(url="count(*)")),
    ("no view and no sink", lambda app: (views(app), app.plan())),
    ("their columns differ", lambda app: views(app).union(app.stream("w", schema="url string"))),
    ("has no place to add", lambda app: views(app).where("ms > 1").with_place("place")),
    ("has no place to add", lambda app: views(app).late().with_place("place")),
    ("two columns 'url'", lambda app: views(app).with_place("url")),
    ("not the name of a column", lambda app: views(app).with_place("")),
]


@pytest.mark.parametrize(("fact", "declare"), REFUSED, ids=[fact for fact, _ in REFUSED])
def test_a_mistake_is_refused_with_a_hint_and_the_users_line(fact: str, declare: Callable[[Declaration], object]) -> None:
    with pytest.raises(PlanError, match=fact) as error:
        declare(Declaration("mistakes"))
    assert error.value.hint or error.value.why


def test_an_unknown_column_names_the_users_line_and_the_columns_there_are() -> None:
    with pytest.raises(PlanError) as error:
        views(Declaration("typo")).where("urll = '/a'")
    assert "urll" in str(error.value)
    assert "url" in str(error.value.hint)
    assert error.value.where is not None
    assert "test_declaration.py" in error.value.where


def test_every_step_knows_its_columns() -> None:
    stream = views(Declaration("columns"))
    assert stream.select("upper(url) as url, ms").columns.names == ["url", "ms"]
    assert stream.with_columns(seconds="ms / 1000").columns.names == ["url", "ms", "tags", "at", "seconds"]
    assert stream.explode("tags", into="tag").columns.names == ["url", "ms", "tags", "at", "tag"]
    counted = stream.window(tumbling("1 minute"), by="url").agg(n="count(*)", mean="avg(ms)")
    assert counted.columns.names == ["url", "window_start", "window_end", "n", "mean", "pane", "revision"]
    assert stream.to_table(key="url").to_stream().columns.names == ["url", "ms", "tags", "at", "op"]


def test_steps_have_names_that_do_not_depend_on_other_steps() -> None:
    alone, among = Declaration("alone"), Declaration("among")
    first = views(alone).where("ms > 1").window(tumbling("1 minute")).agg(n="count(*)")
    other = views(among)
    other.group("url", ttl=None).agg(n="count(*)")
    second = other.where("ms > 1").window(tumbling("1 minute")).agg(n="count(*)")
    assert first.name == second.name == "views.where.window"
