"""Results that a target cannot take are refused before anything runs."""

from __future__ import annotations

import pytest

from headrace.api.declaration import Declaration
from headrace.core.errors import PlanError
from headrace.core.promise import Takes
from headrace.log.target import LogTopic
from headrace.plan.plan import Sink
from headrace.plan.tables.latest import ToTable
from tests.support.targets import MemoryTarget


def test_what_is_no_target_is_refused_where_it_is_written() -> None:
    app = Declaration("sinks")
    clicks = app.stream("clicks", schema="page string, n bigint")
    with pytest.raises(PlanError, match="'somewhere' is not a target") as refused:
        app.sink(clicks, "somewhere")
    assert "test_sinks.py" in str(refused.value.where)


def test_a_key_that_is_no_column_is_refused() -> None:
    app = Declaration("sinks")
    with pytest.raises(PlanError, match=r"key of sink 'clicks\.sink' 'user'"):
        app.sink(app.stream("clicks", schema="page string, n bigint"), MemoryTarget(key=("user",)))


def test_results_that_replace_others_need_a_key() -> None:
    app = Declaration("sinks")
    counts = app.stream("clicks", schema="page string, n bigint").group("page", ttl=None).agg(n="sum(n)").select("n")
    with pytest.raises(PlanError, match="nothing tells which"):
        app.sink(counts, LogTopic("counts"))


def test_facts_that_replace_each_other_by_a_key_are_made_a_table_first() -> None:
    app = Declaration("sinks")
    clicks = app.stream("clicks", schema="page string, n bigint")
    app.sink(clicks, MemoryTarget(key=("page",)))
    app.sink(clicks, MemoryTarget(key=("page",), takes=Takes.CHANGES))
    app.sink(clicks, LogTopic("clicks"))
    table, keyed, facts = (output for output in app.plan().outputs if isinstance(output, Sink))
    assert isinstance(table.node, ToTable)
    assert (table.folds_by, keyed.folds_by, facts.folds_by) == (("page",), (), ())
    assert [sink.name for sink in (table, keyed, facts)] == ["clicks.sink", "clicks.sink#2", "clicks.sink#3"]


def test_a_table_is_written_by_its_own_key_or_one_that_holds_it() -> None:
    app = Declaration("sinks")
    counts = app.stream("clicks", schema="page string, n bigint").group("page", ttl=None).agg(n="sum(n)")
    app.sink(counts, MemoryTarget())
    app.sink(counts, MemoryTarget(key=("n", "page")))
    first, second = (output for output in app.plan().outputs if isinstance(output, Sink))
    assert (first.folds_by, second.folds_by) == (("page",), ("n", "page"))
    assert first.node is second.node
