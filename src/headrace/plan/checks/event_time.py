"""Refusals about event time: steps that need one, or that would wait for it forever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.plan.nodes import Node, Source


def refuse_a_ttl_of_no_time(node: Node) -> None:
    ttl = node.expires_after
    if ttl is not None and ttl <= timedelta(0):
        raise PlanError(
            f"ttl of {node.name!r} is {spelled(ttl)}",
            why="everything would be forgotten as soon as it comes",
            hint="give a duration above zero",
            where=node.where,
        )


def refuse_a_ttl_without_time(node: Node) -> None:
    untimed = next((before for before in node.inputs if not before.watermarked), None)
    if node.expires_after is not None and untimed is not None:
        raise PlanError(
            f"ttl of {node.name!r}: {untimed.name!r} has no event time",
            why="ttl is counted in event time, so nothing would ever be forgotten",
            hint="declare the stream with time= and watermark=, or spell out ttl=None",
            where=node.where,
        )


def refuse_an_order_without_time(node: Node) -> None:
    untimed = next((before for before in node.inputs if not before.watermarked), None)
    if untimed is None:
        return
    if node.ordered:
        raise PlanError(
            f"previous records of {untimed.name!r}, which has no event time",
            why="records of several partitions come in no order of their own",
            hint="declare the stream with time= and watermark=",
            where=node.where,
        )
    for call in node.aggregates:
        if call.function in ("first", "last"):
            raise PlanError(
                f"{call} over {untimed.name!r}, which has no event time",
                why="records of several partitions come in no order of their own",
                hint="declare the stream with time= and watermark=, or use min_by and max_by",
                where=node.where,
            )


def refuse_a_time_that_was_replaced(node: Node) -> None:
    """A column with the name of the event time that is another one: steps by event time would continue with the old one."""
    if not node.judges_lateness and not node.opaque:
        return
    for source, steps in (way for before in node.inputs for way in _ways(before)):
        names = () if source.time is None else source.time.columns if node.opaque or source.time.column else ()
        found = next(((step, name) for step in steps for name in names if step.replaces(name)), None)
        if found is not None:
            raise PlanError(
                f"{found[0].name!r} replaces column {found[1]!r}, the event time of stream {source.name!r}",
                why=f"{node.name!r} would continue with the time that the record came with",
                hint=f"give the new column another name, or declare the time so: time= of stream {source.name!r} takes an expression",
                where=found[0].where,
            )


def _ways(node: Node) -> Iterator[tuple[Source, list[Node]]]:
    """The sources behind a step, up to the next one with state, each with the steps on the way."""
    if node.declared_stream:
        yield node.declared_stream, []
    elif not node.stateful and not node.opaque:
        for before in node.inputs:
            yield from ((source, [node, *steps]) for source, steps in _ways(before))


def refuse_an_alignment_that_may_stop(sources: Sequence[Source]) -> None:
    timed = [source for source in sources if source.watermark is not None]
    for source in [source for source in sources if source.align is not None]:
        others = [other for other in timed if other is not source]
        endless = next((other for other in others if other.watermark is not None and other.watermark.idle is None), None)
        if source.watermark is None or not others:
            fact, why = f"stream {source.name!r} is aligned with nothing", "reading is bounded by the event time of other streams"
            hint = "leave out align=, or combine it with a stream that has an event time"
        elif endless is not None:
            fact = f"stream {source.name!r} is aligned with {endless.name!r}, which is never idle"
            why = f"when nothing comes from {endless.name!r}, {source.name!r} would not be read any more"
            hint = f'say when it counts as idle: watermark=hr.bounded(..., idle="1 minute") of {endless.name!r}'
        else:
            continue
        raise PlanError(fact, why=why, hint=hint, where=source.where)
