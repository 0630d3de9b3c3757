"""What cannot be made of results that change: it would depend on when a result is taken back, or could not be taken back itself."""

from __future__ import annotations

from collections.abc import Callable

from headrace.core.errors import PlanError
from headrace.plan.aggregation import Aggregation, GroupAggregate, WindowAggregate
from headrace.plan.clocked import ProcessingTime
from headrace.plan.dedup import Dedup
from headrace.plan.moving import moving_expressions, moving_results
from headrace.plan.nodes import Node
from headrace.plan.previous import WithPrevious
from headrace.plan.steps import ToStream, Where
from headrace.plan.tables import ToTable
from headrace.plan.top import Top
from headrace.plan.windows import Count, Global, Session, Sliding


def refuse_a_session_over_changes(node: Node) -> None:
    if isinstance(node, WindowAggregate) and isinstance(node.window, Session) and node.input.changes:
        raise PlanError(
            f"session windows over {node.input.name!r}, whose results change",
            why="a session that a result has joined or prolonged cannot be parted again when that is taken back",
            hint="leave out until= before it, or use tumbling windows",
            where=node.where,
        )


def refuse_places_among_changes(node: Node) -> None:
    if isinstance(node, WindowAggregate) and isinstance(node.window, Sliding | Count) and node.input.changes:
        raise PlanError(
            f"{node.window} over {node.input.name!r}, whose results change",
            why="the windows of others begin or end with a result, and it may be taken back",
            hint="take the changes as facts first: .to_stream(), or use tumbling or hopping windows",
            where=node.where,
        )


def refuse_parts_of_changes(node: Node) -> None:
    if isinstance(node, WindowAggregate) and node.input.changes and node.emit.again and not node.emit.retracts:
        raise PlanError(
            f"{node.emit.mode} panes over {node.input.name!r}, whose results change",
            why="what is taken back there may have gone out in a pane that stands",
            hint='mode="retracting"',
            where=node.where,
        )


def refuse_what_cannot_be_said_again(node: Node) -> None:
    moving = moving_expressions(node) if any(before.changes for before in node.inputs) else []
    moving += moving_results(node) if node.changes else []
    if moving:
        raise PlanError(
            f"{node.name!r} evaluates {moving[0]!r}, which is another value each time, over results that change",
            why="what is taken back would not be what was given out, so that rows would stay or sums be wrong",
            hint="evaluate it of the records before they are aggregated, or take the changes as facts first: .to_stream()",
            where=node.where,
        )


def refuse_counting_what_is_restated(node: Node) -> None:
    found = next((before for before in node.inputs if before.restates), None)
    if found is not None and (isinstance(node, Aggregation | Where | Dedup | WithPrevious)):
        raise PlanError(
            f"{node.name!r} over {found.name!r}, whose panes say again what earlier ones said",
            why="a record would be counted once for each pane it is in, and a pane that is held back would leave an older one standing",
            hint='mode="retracting", which takes earlier panes back, or mode="discarding"',
            where=node.where,
        )


def refuse_changes_where_only_facts_fit(sink: str, node: Node, target: object) -> None:
    if node.changes and getattr(target, "append_only", False):
        raise PlanError(
            f"sink {sink!r} to {target}: results of {node.name!r} are replaced or taken back later",
            why="it can only be added to, so its readers would keep what does not hold any more",
            hint='take the changes as facts first: .to_stream(), or emit panes that stand: mode="discarding" or "accumulating"',
            where=node.where,
        )


def refuse_a_window_over_a_table(node: Node) -> None:
    table = _table_before(node.input) if isinstance(node, WindowAggregate) else None
    if table is not None:
        raise PlanError(
            f"windows over the table {table.name!r}",
            why="a row may be replaced long after the window it was counted in has closed",
            hint="take its changes as facts first: .to_stream()",
            where=node.where,
        )


def refuse_a_window_over_all_time(node: Node) -> None:
    if not isinstance(node, WindowAggregate) or isinstance(node.window, ProcessingTime):
        return
    endless = _before(node.input, lambda before: isinstance(before, WindowAggregate) and isinstance(before.window, Global))
    if endless is not None:
        raise PlanError(
            f"windows over {endless.name!r}, which is one window for all time",
            why="its results have the time of their last record, and come or are taken back long after windows of that time have closed",
            hint="windows of a length in its place: hr.tumbling(...), or changes of a table as facts: group(...).agg(...).to_stream()",
            where=node.where,
        )


def refuse_duplicates_of_changes(node: Node) -> None:
    if isinstance(node, Dedup) and node.input.changes:
        raise PlanError(
            f"duplicates among {node.input.name!r}, whose results change",
            why="when the first is taken back, those that were dropped for it are gone",
            hint="take the changes as facts first: .to_stream(), or leave out duplicates before the aggregation",
            where=node.where,
        )


def refuse_the_record_before_a_change(node: Node) -> None:
    if isinstance(node, WithPrevious) and node.input.changes:
        raise PlanError(
            f"previous records of {node.input.name!r}, whose results change",
            why="a result that is taken back would have stood beside others already",
            hint="take the changes as facts first: .to_stream()",
            where=node.where,
        )


def refuse_a_top_without_an_end(node: Node) -> None:
    if not isinstance(node, Top) or not node.shared:
        return
    if not node.input.keys:
        fact, why = "nothing tells its records apart", "one that is replaced could not be found"
        hint = "keep the columns of its key in every step before it, or make it a table: .to_table(key)"
    elif not node.closes and _table_before(node.input) is None:
        fact, why = "its results are never over", "every one of them would be kept for ever"
        hint = 'per="window" over windows of one length, or make it a table first: .to_table(key)'
    else:
        return
    raise PlanError(f"top {node.count} of {node.input.name!r}: {fact}", why=why, hint=hint, where=node.where)


def _table_before(node: Node) -> Node | None:
    """The table whose changes a node takes in as such."""
    return _before(node, lambda before: isinstance(before, GroupAggregate | ToTable))


def _before(node: Node, wanted: Callable[[Node], bool]) -> Node | None:
    """The nearest node of some kind whose results are not taken as facts on the way."""
    if isinstance(node, ToStream):
        return None
    if wanted(node):
        return node
    return next((found for found in (_before(before, wanted) for before in node.inputs) if found is not None), None)
