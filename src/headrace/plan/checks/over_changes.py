"""Refusals over results that change: the result would depend on when another is retracted, or could not be retracted itself."""

from __future__ import annotations

from collections.abc import Callable

from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.core.promise import Takes
from headrace.plan.checks.nondeterministic import nondeterministic_expressions, nondeterministic_results
from headrace.plan.nodes import Node, told_apart, upstream
from headrace.plan.sinks import Target
from headrace.plan.windows.emit import RETRACTING


def refuse_changes_where_a_step_needs_facts(node: Node) -> None:
    needs, found = node.facts_only, next((before for before in node.inputs if before.changes), None)
    if needs is not None and found is not None:
        raise PlanError(f"{needs.what} {found.name!r}, whose results change", why=needs.why, hint=needs.hint, where=node.where)


def refuse_parts_of_changes(node: Node) -> None:
    changing = next((before for before in node.inputs if before.changes), None)
    if changing is not None and node.again and node.panes is not None and node.panes.mode != RETRACTING:
        raise PlanError(
            f"{node.panes.mode} panes over {changing.name!r}, whose results change",
            why="what is retracted there may have been emitted in a pane that stays",
            hint='mode="retracting"',
            where=node.where,
        )


def refuse_what_cannot_be_said_again(node: Node) -> None:
    changing = nondeterministic_expressions(node) if any(before.changes for before in node.inputs) else []
    changing += nondeterministic_results(node) if node.changes else []
    if changing:
        raise PlanError(
            f"{node.name!r} evaluates {changing[0]!r}, which has a different value each time, over results that change",
            why="a retraction would differ from what was emitted, so that rows would stay or sums be wrong",
            hint="evaluate it over the records before they are aggregated, or take the changes as facts first: .to_stream()",
            where=node.where,
        )


def refuse_counting_what_is_restated(node: Node) -> None:
    found = next((before for before in node.inputs if before.restates), None)
    if found is not None and node.counts_each:
        raise PlanError(
            f"{node.name!r} over {found.name!r}, whose panes repeat the content of earlier ones",
            why="a record would be counted once for each pane it is in, and a pane that is filtered out would leave an older one in place",
            hint='mode="retracting", which retracts earlier panes, or mode="discarding"',
            where=node.where,
        )


def refuse_changes_where_only_facts_fit(sink: str, node: Node, target: Target) -> None:
    if node.changes and target.promise.takes is Takes.FACTS:
        raise PlanError(
            f"sink {sink!r} to {target}: results of {node.name!r} are replaced or retracted later",
            why="it can only be added to, so its readers would keep rows that are no longer valid",
            hint='take the changes as facts first: .to_stream(), or emit panes that stay: mode="discarding" or "accumulating"',
            where=node.where,
        )


def refuse_a_window_over_a_table(node: Node) -> None:
    table = None if node.windowing is None else next(filter(None, map(_table_before, node.inputs)), None)
    if table is not None:
        raise PlanError(
            f"windows over the table {table.name!r}",
            why="a row may be replaced long after the window it was counted in has closed",
            hint="take its changes as facts first: .to_stream()",
            where=node.where,
        )


def refuse_what_waits_over_all_time(node: Node) -> None:
    if not node.judges_lateness:
        return
    found = (_before(one, lambda before: before.endless) for one in node.inputs)
    endless = next((one for one in found if one is not None), None)
    if endless is not None:
        what = f"{node.name!r}" if node.windowing is None else "windows"
        raise PlanError(
            f"{what} over {endless.name!r}, which is one window for all time",
            why="its results have the time of their last record, and come or are retracted long after the watermark has passed that",
            hint="use windows that end: hr.tumbling(...), or changes of a table as facts: group(...).agg(...).to_stream()",
            where=node.where,
        )


def refuse_a_ttl_below_retractions(node: Node) -> None:
    changing, kept = next((before for before in node.inputs if before.changes), None), node.expires_after
    if not node.totals or kept is None or changing is None:
        return
    bound = changing.settles
    if bound is not None and bound <= kept:
        return
    ttl, table = spelled(kept), _table_before(changing)
    if table is not None:
        when = "at any time" if bound is None else f"for {spelled(bound)}"
        hint = (
            "ttl=None: a group is removed with its last row, so there are never more groups than rows; "
            f'to bound the rows, give {table.name!r} a ttl of its own, at most {ttl}: ttl="{ttl}"'
        )
    elif bound is None:
        when, hint = "at any time", "ttl=None: a group is removed with its last row"
    else:
        when, hint = f"for {spelled(changing.lateness)} after its time", f"a ttl above {spelled(changing.lateness)}, or ttl=None"
    raise PlanError(
        f"ttl of {node.name!r} is {ttl}, and a result of {changing.name!r} may be retracted {when}",
        why="a group that was forgotten and came back would lose rows that it never counted",
        hint=hint,
        where=node.where,
    )


def refuse_a_top_without_an_end(node: Node) -> None:
    if not node.keeps_all:
        return
    (before,) = node.inputs
    if not before.keys:
        fact, why = "nothing tells its records apart", "one that is replaced could not be found"
        hint = told_apart(before) if before.changes else 'make it a table: .to_table(key), or ask for places: rank="rank"'
    elif not node.expires_with_window and _table_before(before) is None:
        fact, why = "its results never expire", "every one of them would be kept forever"
        hint = 'per="window" over windows of one length, a table first: .to_table(key), or the places of facts: rank="rank"'
    else:
        return
    raise PlanError(f"{node.keeps_all} of {before.name!r}: {fact}", why=why, hint=hint, where=node.where)


def refuse_the_latest_of_rows_not_told_apart(node: Node) -> None:
    before = next((one for one in node.inputs if one.changes and not one.keys), None) if node.latest_by else None
    if before is not None:
        raise PlanError(
            f"the latest of {before.name!r} by {', '.join(node.latest_by)}: its records change, and nothing tells which one did",
            why="a record that is retracted could not be found",
            hint=told_apart(before),
            where=node.where,
        )


def refuse_a_transform_of_results(node: Node) -> None:
    before = next((one for one in upstream(node) if one.stateful), None) if node.opaque else None
    if before is not None:
        raise PlanError(
            f"transform {node.name!r} follows {before.name!r}, which has state",
            why="its function would see results that are retracted later as if they were new",
            hint=f"transform before {before.name!r}, or in a second app that reads the topic of a view",
            where=node.where,
        )


def _table_before(node: Node) -> Node | None:
    """The table whose changes a node reads as such."""
    return _before(node, lambda before: before.tabular)


def _before(node: Node, wanted: Callable[[Node], bool]) -> Node | None:
    """The nearest node of some kind whose results are not read as facts on the way."""
    if node.facts_of is not None:
        return None
    if wanted(node):
        return node
    return next((found for found in (_before(before, wanted) for before in node.followed) if found is not None), None)
