"""What a plan may not ask for, one function a pitfall: each would give results that depend on when records came, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import pyarrow as pa

from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.core.schema import type_name
from headrace.plan.aggregation import Aggregation, GroupAggregate, WindowAggregate
from headrace.plan.clocked import ProcessingTime
from headrace.plan.columns import refuse_columns_of_no_type, refuse_names_of_the_engine, refuse_names_that_mean_several
from headrace.plan.dedup import Dedup
from headrace.plan.emit import Emit
from headrace.plan.moving import moving_expressions, moving_results
from headrace.plan.nodes import Node, Source
from headrace.plan.previous import WithPrevious
from headrace.plan.process import Process
from headrace.plan.steps import KeyBy, ToStream, Where
from headrace.plan.tables import ToTable
from headrace.plan.top import Top
from headrace.plan.windows import Count, Global, Session, Sliding


def check(nodes: Iterable[Node]) -> None:
    """Refuse the first step that cannot be run as it is meant."""
    for node in nodes:
        refuse_names_of_the_engine(node)
        refuse_names_that_mean_several(node)
        refuse_columns_of_no_type(node)
        refuse_keys_that_are_not_plain(node)
        refuse_a_ttl_of_no_time(node)
        refuse_a_session_over_changes(node)
        refuse_sessions_that_restate(node)
        refuse_panes_of_windows_that_have_one(node)
        refuse_places_among_changes(node)
        refuse_parts_of_changes(node)
        refuse_what_cannot_be_said_again(node)
        refuse_counting_what_is_restated(node)
        refuse_a_window_over_a_table(node)
        refuse_a_window_over_all_time(node)
        refuse_duplicates_of_changes(node)
        refuse_the_record_before_a_change(node)
        refuse_a_top_without_an_end(node)
        refuse_an_order_without_time(node)
        refuse_a_ttl_without_time(node)
        refuse_lateness_of_the_wall_clock(node)


def refuse_keys_that_are_not_plain(node: Node) -> None:
    names = _key(node)
    nested = next((name for name in names if pa.types.is_nested(node.inputs[0].columns.field(name).type)), None)
    if nested is not None:
        raise PlanError(
            f"key {nested!r} of {node.name!r} is {type_name(node.inputs[0].columns.field(nested).type)}",
            why="records are spread and told apart by plain values",
            hint="take a part of it, or its text, into a column first: with_columns(...)",
            where=node.where,
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PlanError(f"the key of {node.name!r} has {twice!r} twice", hint="name it once", where=node.where)


def refuse_a_ttl_of_no_time(node: Node) -> None:
    if isinstance(node, GroupAggregate | ToTable | Dedup | WithPrevious | Process) and node.ttl is not None and node.ttl <= timedelta(0):
        raise PlanError(
            f"ttl of {node.name!r} is {spelled(node.ttl)}",
            why="everything would be forgotten as soon as it comes",
            hint="give a duration above zero",
            where=node.where,
        )


def refuse_a_session_over_changes(node: Node) -> None:
    if isinstance(node, WindowAggregate) and isinstance(node.window, Session) and node.input.changes:
        raise PlanError(
            f"session windows over {node.input.name!r}, whose results change",
            why="a session that a result has joined or prolonged cannot be parted again when that is taken back",
            hint="leave out until= before it, or use tumbling windows",
            where=node.where,
        )


def refuse_sessions_that_restate(node: Node) -> None:
    if isinstance(node, WindowAggregate) and isinstance(node.window, Session) and node.emit.restates:
        raise PlanError(
            f"accumulating panes of the sessions {node.name!r}",
            why="sessions grow and merge, and panes that nobody takes back would stand beside those that replace them",
            hint='mode="retracting"',
            where=node.where,
        )


def refuse_panes_of_windows_that_have_one(node: Node) -> None:
    if not isinstance(node, WindowAggregate):
        return
    emit = node.emit
    if isinstance(node.window, Sliding) and emit != Emit(until=emit.until):
        fact, why = "a sliding window has no early pane", "it ends with an event, and what comes late replaces its pane"
        hint = "emit(until=...) alone"
    elif isinstance(node.window, Count) and emit.again:
        fact, why = "a count window is given out when it is full", "the places in it are given away then"
        hint = "leave out emit(...)"
    else:
        return
    raise PlanError(f"emit of {node.name!r}: {fact}", why=why, hint=hint, where=node.where)


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


def refuse_an_order_without_time(node: Node) -> None:
    if isinstance(node, WithPrevious) and not node.input.watermarked:
        raise PlanError(
            f"previous records of {node.input.name!r}, which has no event time",
            why="records of several partitions come in no order of their own",
            hint="declare the stream with time= and watermark=",
            where=node.where,
        )
    if not isinstance(node, Aggregation) or node.input.watermarked:
        return
    for call in node.calls:
        if call.function in ("first", "last"):
            raise PlanError(
                f"{call} over {node.input.name!r}, which has no event time",
                why="records of several partitions come in no order of their own",
                hint="declare the stream with time= and watermark=, or use min_by and max_by",
                where=node.where,
            )


def refuse_a_ttl_without_time(node: Node) -> None:
    if isinstance(node, GroupAggregate | ToTable | Dedup) and node.ttl is not None and not node.input.watermarked:
        raise PlanError(
            f"ttl of {node.name!r}: {node.input.name!r} has no event time",
            why="ttl is counted in event time, so nothing would ever be forgotten",
            hint="declare the stream with time= and watermark=, or spell out ttl=None",
            where=node.where,
        )


def refuse_an_alignment_that_may_stop(sources: Sequence[Source]) -> None:
    timed = [source for source in sources if source.watermark is not None]
    for source in [source for source in sources if source.align is not None]:
        others = [other for other in timed if other is not source]
        endless = next((other for other in others if other.watermark is not None and other.watermark.idle is None), None)
        if source.watermark is None or not others:
            fact, why = f"stream {source.name!r} is aligned with nothing", "reading is bounded by the event time of other streams"
            hint = "leave out align=, or unite it with a stream that has an event time"
        elif endless is not None:
            fact = f"stream {source.name!r} is aligned with {endless.name!r}, which is never idle"
            why = f"when nothing comes from {endless.name!r}, {source.name!r} would not be read any more"
            hint = f'say when it counts as idle: watermark=hr.bounded(..., idle="1 minute") of {endless.name!r}'
        else:
            continue
        raise PlanError(fact, why=why, hint=hint, where=source.where)


def refuse_lateness_of_the_wall_clock(node: Node) -> None:
    if not isinstance(node, WindowAggregate) or not isinstance(node.window, ProcessingTime):
        return
    if node.input.changes or node.input.restates:
        fact, why = f"over {node.input.name!r}, whose results change", "what is taken back comes at another time than what it takes back"
        hint = "take the changes as facts first: .to_stream(), or use windows in event time"
    elif node.emit != Emit(every=node.emit.every, mode=node.emit.mode):
        fact, why = "with early= or until=", "nothing is late by the wall clock, and nothing happens between two epochs"
        hint = "leave them out; every= and mode= may stay"
    elif any(call.function in ("first", "last") for call in node.calls):
        fact, why = "with first or last", "all records of an epoch come at one time, so none of them is the first"
        hint = "min_by(value, time) and max_by(value, time)"
    else:
        return
    raise PlanError(f"windows of processing time {fact}: {node.name!r}", why=why, hint=hint, where=node.where)


def _key(node: Node) -> tuple[str, ...]:
    """The columns by which a step tells records apart."""
    if isinstance(node, Aggregation | Dedup | WithPrevious | Process):
        return node.by
    if isinstance(node, ToTable | KeyBy):
        return node.key
    return node.per if isinstance(node, Top) else ()


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
