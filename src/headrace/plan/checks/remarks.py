"""Remarks on a plan, one function for each pitfall: what is allowed but probably not meant gets a warning at its line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from headrace.core.durations import spelled
from headrace.core.remarks import warn
from headrace.plan.checks.nondeterministic import nondeterministic_expressions, nondeterministic_results
from headrace.plan.nodes import Node
from headrace.plan.watermarks import Bounded

# No usual delay of a record, and no usual error of a clock, is longer.
_LONG = timedelta(days=7)


def remark(nodes: Sequence[Node]) -> None:
    """Warn of every step that may not do what was meant."""
    for node in nodes:
        warn_of_the_wall_clock(node)
        warn_of_what_changes_from_call_to_call(node)
        warn_of_a_window_that_waits_for_the_end(node)
        warn_of_a_watermark_far_behind(node)
        warn_of_a_future_that_is_believed(node)
    warn_of_silence_that_stalls(nodes)


def warn_of_the_wall_clock(node: Node) -> None:
    if node.windowing is not None and node.windowing.by_clock:
        warn(
            f"{node.name!r} has windows by the wall clock: {node.windowing}",
            why="a record is counted when the job happens to read it, so a replay, a second version of the job, or a job that catches up "
            "after a stop gives other results",
            hint="windows in event time do not: hr.tumbling(...) over a stream with time= and watermark=",
            where=node.where,
        )


def warn_of_what_changes_from_call_to_call(node: Node) -> None:
    changing = [*nondeterministic_expressions(node), *nondeterministic_results(node)]
    if changing:
        warn(
            f"{node.name!r} evaluates {changing[0]!r}, which has a different value each time",
            why="a replay, or an epoch that is repeated, gives other results",
            hint="take it from the record: let the sender write the time or the number into a column",
            where=node.where,
        )


def warn_of_a_window_that_waits_for_the_end(node: Node) -> None:
    if node.endless and node.panes is not None and node.panes.early is None and node.panes.every is None:
        warn(
            f"{node.name!r} is one window for all time, and nothing is emitted before the input ends",
            why="the input of a running job never ends",
            hint='emit(early="10 seconds") or emit(every=1000), or a table that every record updates: group(..., ttl=).agg(...)',
            where=node.where,
        )


def warn_of_a_watermark_far_behind(node: Node) -> None:
    rule = node.rule
    if rule is None:
        return
    bound = rule.delay if isinstance(rule, Bounded) else rule.max
    if bound > _LONG:
        warn(
            f"the watermark of {node.name!r} stays {spelled(bound)} behind its records",
            why="no window emits before a record that much later has arrived, and all of that time is kept in the state",
            hint='a shorter bound, and emit(until="30 days") to correct results by records that come later',
            where=node.where,
        )


def warn_of_a_future_that_is_believed(node: Node) -> None:
    rule = node.rule
    if rule is not None and rule.max_ahead > _LONG:
        warn(
            f"{node.name!r} accepts times up to {spelled(rule.max_ahead)} ahead of the wall clock",
            why="one record with a wrong time moves the watermark there, and everything that comes after it is late",
            hint="keep the default of an hour, or give the largest error that clocks may have: a record beyond it is a dead letter",
            where=node.where,
        )


def warn_of_silence_that_stalls(nodes: Sequence[Node]) -> None:
    # A join that waits for nothing still keeps one side until the other has passed it.
    waiting = [node for node in nodes if node.waits or (len(node.inputs) > 1 and node.judges_lateness)]
    waited_for = {name for node in waiting for name in _sources(node)}
    declared = [source for node in nodes if (source := node.declared_stream) and source.name in waited_for]
    sources = [source for source in declared if source.watermark is not None]
    for source in sources:
        assert source.watermark is not None
        several = source.partitions is not None and source.partitions > 1
        if source.watermark.idle is not None or not (several or len(sources) > 1):
            continue
        silent = f"one of its {source.partitions} partitions" if several else "it"
        warn(
            f"the watermark of {source.name!r} has no idle=",
            why=f"when {silent} falls silent, the watermark of the app waits for it: what waits is not emitted, and no state expires",
            hint='say after how much silence it is ignored: idle="1 minute"',
            where=source.where,
        )


def _sources(node: Node) -> Iterator[str]:
    if node.declared_stream:
        yield node.name
    for before in node.inputs:
        yield from _sources(before)
