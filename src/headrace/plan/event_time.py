"""What cannot be without an event time, or without an end of waiting for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.plan.aggregation import Aggregation, GroupAggregate
from headrace.plan.dedup import Dedup
from headrace.plan.nodes import Node, Source
from headrace.plan.previous import WithPrevious
from headrace.plan.process import Process
from headrace.plan.tables import ToTable


def refuse_a_ttl_of_no_time(node: Node) -> None:
    if isinstance(node, GroupAggregate | ToTable | Dedup | WithPrevious | Process) and node.ttl is not None and node.ttl <= timedelta(0):
        raise PlanError(
            f"ttl of {node.name!r} is {spelled(node.ttl)}",
            why="everything would be forgotten as soon as it comes",
            hint="give a duration above zero",
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
