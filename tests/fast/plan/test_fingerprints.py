"""Differences by which steps, aggregates and functions are told apart, and those that do not count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.plan.evolution.canonical import canonical, digest
from headrace.plan.evolution.comparison import Decisions, compared
from headrace.plan.evolution.described import Described, described

LIMIT = 3


def _helper(price: int) -> int:
    return price + 1


def _adding(amount: int) -> Callable[[Any], int]:
    def added(event: Any) -> int:
        """Add an amount."""
        return int(event.price) + amount

    return added


def _commented(amount: int) -> Callable[[Any], int]:
    def added(event: Any) -> int:
        """Say something else."""
        # The same, in other words.
        return int(event.price) + amount

    return added


def test_a_function_is_its_code_its_constants_its_closure_and_its_defaults() -> None:
    assert digest(_adding(1)) == digest(_adding(1)) == digest(_commented(1))
    assert digest(_adding(1)) != digest(_adding(2))
    assert digest(lambda event: event.price > 3) == digest(lambda event: event.price > 3)
    assert digest(lambda event: event.price > 3) != digest(lambda event: event.price > 4)
    assert digest(lambda event, least=3: event.price > least) != digest(lambda event, least=4: event.price > least)
    assert digest(lambda event: event.price) != digest(lambda event: event.cost)


def test_a_function_is_what_it_calls_and_the_globals_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def judged(event: Any) -> bool:
        return _helper(event.price) > LIMIT

    before = digest(judged)
    monkeypatch.setitem(globals(), "LIMIT", 4)
    assert digest(judged) != before
    monkeypatch.undo()
    assert digest(judged) == before
    monkeypatch.setitem(globals(), "_helper", lambda price: price + 2)
    assert digest(judged) != before


def test_a_function_that_refers_to_itself_has_a_text() -> None:
    def down(number: int) -> int:
        return down(number - 1) if number else 0

    assert canonical(down) == canonical(down)


def _described(declare: Callable[[Declaration, Any], None], **stream: Any) -> Described:
    app = Declaration("shop")
    options = {"time": "at", "watermark": hr.bounded("10 seconds")} | stream
    declare(app, app.stream("sales", "user string, price bigint, cost double, at timestamp", **options))
    return described(app.plan())


def _grouped(**aggregates: str) -> Callable[[Declaration, Any], None]:
    return lambda app, sales: app.view("totals", sales.group("user", ttl=None).agg(**aggregates))


def _changes(before: Callable[[Declaration, Any], None], after: Callable[[Declaration, Any], None], **stream: Any) -> Decisions:
    return compared(_described(before), _described(after, **stream))


def _decisions(changes: Decisions) -> dict[str, str]:
    return {decision.name: decision.decision for decision in changes.decisions}


def test_blanks_names_of_results_and_the_order_of_aggregates_change_no_state() -> None:
    before = _grouped(total="sum(price)", n="count(*)")
    spaced = _changes(before, _grouped(total="sum( price )", n="COUNT(*)"))
    assert spaced.status == "same"
    renamed = _changes(before, _grouped(n="count(*)", money="sum(price)"))
    assert (renamed.status, _decisions(renamed)) == ("changed", {"sales": "keep", "totals/group": "keep", "totals": "keep"})
    assert not renamed.dropped


def test_swapped_aggregates_are_told_apart() -> None:
    changes = _changes(_grouped(a="min(price)", b="max(price)"), _grouped(a="max(price)", b="min(price)"))
    assert changes.status == "changed"
    assert not changes.dropped


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (_grouped(total="sum(price)", n="count(*)", most="max(price)"), "max(price) is new"),
        (_grouped(total="sum(cost)", n="count(*)"), "sum(cost) is new"),
        (lambda app, sales: app.view("totals", sales.group("price", ttl=None).agg(total="sum(price)", n="count(*)")), "its key changed"),
        (
            lambda app, sales: app.view("totals", sales.where("price > 0").group("user", ttl=None).agg(total="sum(price)", n="count(*)")),
            "what it reads changed",
        ),
        (
            lambda app, sales: app.view("totals", sales.window(hr.tumbling("1 minute"), by="user").agg(total="sum(price)", n="count(*)")),
            "it is new",
        ),
    ],
)
def test_what_would_need_a_rebuild_is_refused_and_said_why(after: Callable[[Declaration, Any], None], why: str) -> None:
    changes = _changes(_grouped(total="sum(price)", n="count(*)"), after)
    assert changes.status == "refused"
    assert why in str(changes)


def test_a_dropped_aggregate_leaves_the_state_of_the_others() -> None:
    changes = _changes(_grouped(total="sum(price)", n="count(*)"), _grouped(n="count(*)"))
    assert changes.status == "changed"
    assert "without sum(price)" in str(changes)
    assert [len(gone) for gone in changes.dropped.values()] == [1]


def test_another_watermark_is_kept_with_the_difference_it_makes() -> None:
    before = _grouped(total="sum(price)")
    changes = _changes(before, before, watermark=hr.bounded("1 minute", max_ahead="2 hours"))
    assert changes.status == "changed"
    assert "event time does not go back" in str(changes)


def test_a_new_view_of_a_table_begins_with_its_rows_and_one_of_windows_with_the_next_epoch() -> None:
    def before(app: Declaration, sales: Any) -> None:
        app.view("totals", sales.group("user", ttl=None).agg(total="sum(price)"))
        app.view("minutes", sales.window(hr.tumbling("1 minute"), by="user").agg(n="count(*)"))

    def after(app: Declaration, sales: Any) -> None:
        totals = sales.group("user", ttl=None).agg(total="sum(price)")
        minutes = sales.window(hr.tumbling("1 minute"), by="user").agg(n="count(*)")
        app.view("totals", totals)
        app.view("minutes", minutes)
        app.view("rich", totals.where("total > 100"))
        app.view("busy", minutes.where("n > 10"))

    changes = _changes(before, after)
    assert changes.snapshots == ("rich",)
    assert _decisions(changes)["busy"] == "new"
    assert "earlier results are not in it" in str(changes)


def test_a_chosen_name_is_that_of_a_step_whatever_view_is_behind_it() -> None:
    def named(view: str, by: str) -> Callable[[Declaration, Any], None]:
        return lambda app, sales: app.view(view, sales.group(by, ttl=None, name="per_user").agg(total="sum(price)"))

    assert _described(named("totals", "user")).steps[0].addresses[0] == "per_user"
    refused = _changes(named("totals", "user"), named("others", "price"))
    assert "rebuild step per_user: its key changed" in str(refused)
    with pytest.raises(hr.PlanError, match="two steps are called 'twice'"):
        _described(lambda app, sales: [sales.dedup("user", ttl=None, name="twice") for _ in range(2)] and None)


def test_another_code_of_a_function_is_announced_and_keeps_what_the_function_keeps() -> None:
    def processed(amount: int, kept: str = "n int") -> Callable[[Declaration, Any], None]:
        def totals(event: Any, state: Any, timers: Any) -> Any:
            yield {"user": event.user, "price": event.price + amount}

        def declare(app: Declaration, sales: Any) -> None:
            made = sales.process(totals, by="user", state=kept, returns="user string, price bigint", ttl=None)
            app.view("made", made.group("user", ttl=None).agg(total="sum(price)"))

        return declare

    assert _changes(processed(1), processed(1)).status == "same"
    changed = _changes(processed(1), processed(2))
    assert changed.status == "changed"
    assert str(changed).count("the code of a function changed (results of the earlier code stay)") == 2
    assert "state changed" in str(_changes(processed(1), processed(1, "n bigint")))


def test_a_step_under_another_name_takes_the_state_that_its_own_code_made() -> None:
    def counting(**amounts: int) -> Callable[[Declaration, Any], None]:
        def by(amount: int) -> Callable[..., Any]:
            def count(event: Any, state: Any, timers: Any) -> Any:
                yield {"user": event.user, "price": event.price + amount}

            return count

        def declare(app: Declaration, sales: Any) -> None:
            for name, amount in amounts.items():
                made = sales.process(by(amount), by="user", returns="user string, price bigint", ttl=None)
                app.view(name, made.to_table("user"))

        return declare

    changes = _changes(counting(one=1, ten=10), counting(ten_again=10, one_again=1))
    assert "ten_again/process: was ten/process" in str(changes)
    assert "the code of a function changed" not in str(changes)


def test_a_version_is_the_same_after_it_was_written_down() -> None:
    found = _described(_grouped(total="sum(price)"))
    import json

    assert compared(Described.of_json(json.loads(json.dumps(found.to_json()))), found).status == "same"


def test_expressions_with_hundreds_of_operators_in_a_row_have_a_fingerprint() -> None:
    def declared(last: int) -> Described:
        app = Declaration("long")
        stream = app.stream("a", "id int", key="id")
        conditions = " or ".join(f"id = {number}" for number in (*range(200), last))
        app.sink(stream.where(conditions), hr.log("out"), name="out")
        return described(app.plan())

    assert declared(1) == declared(1) != declared(2)
