"""Steps that only Spark evaluates are refused where there is no Spark, and where they would have no meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, tumbling
from headrace.core.errors import PlanError
from headrace.engine.program.compiler import compiled
from headrace.testing.driver import TestDriver


def readings(app: Declaration) -> Stream:
    return app.stream("readings", schema="sensor string, angle double, at timestamp", time="at", watermark=bounded("10s"))


def same(frame: Any) -> Any:
    return frame


REMOTE: list[tuple[str, Callable[[Stream], Stream]]] = [
    ("'sin\\(angle\\) > 0' is evaluated by Spark", lambda s: s.where("sin(angle) > 0")),
    ("'sin\\(angle\\)' is evaluated by Spark", lambda s: s.with_columns(height="sin(angle)")),
    ("'sin\\(angle\\)' is evaluated by Spark", lambda s: s.window(tumbling("1 minute"), by="sensor").agg(top="max(sin(angle))")),
    ("is evaluated by Spark", lambda s: s.window(tumbling("1 minute"), by="sensor").agg(top="sin(max(angle))")),
    ("a function over a PySpark DataFrame", lambda s: s.transform(same)),
]


@pytest.mark.parametrize(("fact", "declare"), REMOTE, ids=[str(place) for place in range(len(REMOTE))])
def test_the_test_driver_names_the_step_that_only_spark_evaluates(fact: str, declare: Callable[[Stream], Stream]) -> None:
    app = Declaration("remote")
    app.view("found", declare(readings(app)), key="sensor")
    with pytest.raises(PlanError, match=fact) as error:
        TestDriver(app)
    assert "only a run on Spark" in str(error.value.hint)
    assert error.value.where is not None
    assert "test_without_spark.py" in error.value.where


REFUSED: list[tuple[str, Callable[[Stream], Stream]]] = [
    ("follows 'readings.group'", lambda s: s.group("sensor", ttl=None).agg(n="count(*)").transform(same)),
    ("has no column 'at'", lambda s: s.select("sensor").transform(same)),
]


@pytest.mark.parametrize(("fact", "declare"), REFUSED, ids=[fact for fact, _ in REFUSED])
def test_what_spark_could_not_do_rightly_is_refused_when_planned(fact: str, declare: Callable[[Stream], Stream]) -> None:
    app = Declaration("refused")
    app.view("found", declare(readings(app)), key="sensor")
    with pytest.raises(PlanError, match=fact) as error:
        compiled(app.plan(), 2)
    assert error.value.hint


def test_steps_of_spark_come_in_an_order_in_which_each_gets_its_records() -> None:
    app = Declaration("order")
    stream = readings(app)
    early = stream.where("cos(angle) > 0").with_columns(height="sin(angle)").where("tan(height) < 1")
    app.view("high", early.group("sensor", ttl=None).agg(n="count(*)").where("cbrt(n) > 1"))
    program = compiled(app.plan(), 2)
    assert [(cut.step, cut.level) for cut in program.cuts.values()] == [
        ("readings.where", 0), ("readings.where.with_columns", 0), ("readings.where.with_columns.where", 0),
        ("readings.where.with_columns.where.group.where", 1),
    ]  # fmt: skip
