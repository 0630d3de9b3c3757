"""Watermarks as declared: how far event time has come in a stream."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.core.durations import spelled
from headrace.core.errors import PlanError

DEFAULT_AHEAD = timedelta(hours=1)


@dataclass(frozen=True)
class Bounded:
    """Records arrive at most `delay` behind the latest one of their partition; others are late.

    The stream's watermark is the minimum over its partitions. A partition without records for `idle` (wall clock) is left out of it; when
    all are silent, windows close all the same. A record whose time is more than `max_ahead` later than the wall clock is a dead letter, so
    that one bad time cannot close every window.
    """

    delay: timedelta
    idle: timedelta | None = None
    max_ahead: timedelta = DEFAULT_AHEAD

    def __post_init__(self) -> None:
        if self.delay < timedelta(0):
            raise PlanError(f"a watermark {spelled(self.delay)} behind would run ahead of the records", hint="give zero or more")
        _check_wall_clock(self.idle, self.max_ahead)

    def __str__(self) -> str:
        return f"bounded {spelled(self.delay)}{_idle_words(self.idle)}"


@dataclass(frozen=True)
class LossBudget:
    """At most a `share` of the records may be late: the bound of each partition is the smallest that would have kept to that.

    The bound is learned from the records of the partition as they arrive. It is `max` until there were enough of them, and never above it.
    The rest is as with `Bounded`.
    """

    share: float
    max: timedelta
    idle: timedelta | None = None
    max_ahead: timedelta = DEFAULT_AHEAD

    def __post_init__(self) -> None:
        if not isinstance(self.share, float | int) or not 0 < self.share < 1:
            raise PlanError(
                f"a loss budget of {self.share!r} is not a share of the records",
                why="at zero nothing may ever be late, at one everything may",
                hint="give a number between them: 0.001 is one in a thousand",
            )
        if self.max <= timedelta(0):
            raise PlanError(f"a loss budget with max={spelled(self.max)} leaves nothing to choose", hint='give a bound: max="5 minutes"')
        _check_wall_clock(self.idle, self.max_ahead)

    def __str__(self) -> str:
        return f"loss budget {self.share:g}, at most {spelled(self.max)}{_idle_words(self.idle)}"


Watermark = Bounded | LossBudget


def _check_wall_clock(idle: timedelta | None, max_ahead: timedelta) -> None:
    if max_ahead < timedelta(0):
        raise PlanError(f"max_ahead={spelled(max_ahead)}: records of this moment would be dead letters", hint="give zero or more")
    if idle is not None and idle <= timedelta(0):
        raise PlanError("idle=0 would leave out every partition at once", hint="give the silence after which a partition counts as idle")


def _idle_words(idle: timedelta | None) -> str:
    return f", idle after {spelled(idle)}" if idle else ""
