"""Event times in joins: the records that one meets, when it is answered, and the watermark from which it is late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch

from headrace.core.clock import to_datetime
from headrace.core.durations import microseconds
from headrace.operators.event_time.epoch_time import EARLIEST, END, LATEST
from headrace.plan.joins.as_of import AsOfJoin
from headrace.plan.joins.interval import IntervalJoin
from headrace.plan.nodes import Node

_TICK = 1


@dataclass(frozen=True)
class JoinTimes:
    """The records of the other side that an event meets, from `first` to `last`, both included; END where there is no such bound.

    `at` is the watermark at which it is emitted if it waits, END if it does not; `late_at` that from which on it is late.
    """

    words: str
    first: int
    last: int
    at: int
    late_at: int


@singledispatch
def join_times(node: Node, before: Node, moment: int) -> Iterator[JoinTimes]:
    """What an event of the input `before` meets at a moment, once for each side that it enters; other steps than joins: nothing."""
    yield from ()


@join_times.register
def _(node: IntervalJoin, before: Node, moment: int) -> Iterator[JoinTimes]:
    sides, earlier, later = node.sides, microseconds(node.before), microseconds(node.after)
    for mine, other, low, high, waits in (
        (sides.left, sides.right, earlier, later, node.left_waits),
        (sides.right, sides.left, later, earlier, sides.keeps_right),
    ):
        if mine.name == before.name:
            settled = moment + high + _TICK + microseconds(other.lateness)
            words = f"meets records of {other.name!r} from {_shown(moment - low)} to {_shown(moment + high)}"
            words += ", and is settled" if waits else ""
            yield JoinTimes(words, moment - low, moment + high, settled if waits else END, moment + _TICK + microseconds(mine.lateness))


@join_times.register
def _(node: AsOfJoin, before: Node, moment: int) -> Iterator[JoinTimes]:
    lateness = microseconds(node.sides.right.lateness)
    if node.sides.left.name == before.name:
        words = f"meets the version of {node.table.name!r} at {_shown(moment)}, if {node.moment!r} is its event time"
        words += ", is answered at once, and proved" if node.early else ", and is answered"
        yield JoinTimes(words, END, moment, moment + _TICK + lateness, moment + _TICK + microseconds(node.reach))
    if node.sides.right.name == before.name:
        ttl = node.table.expires_after
        last = END if ttl is None else moment + microseconds(ttl) - _TICK
        words = f"is the version for records of {node.sides.left.name!r} from {_shown(moment)} until the next version of its key"
        words += "" if ttl is None else f", to {_shown(last)} at the latest"
        yield JoinTimes(words, moment, last, END, moment + _TICK + lateness)


def _shown(moment: int) -> str:
    """A moment in the years of the calendar."""
    return f"{to_datetime(min(max(moment, EARLIEST), LATEST)):%Y-%m-%d %H:%M:%S.%f}".removesuffix(".000000")
