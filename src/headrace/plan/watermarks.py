"""How a stream knows how far event time has come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.core.durations import spelled
from headrace.core.errors import PlanError

DEFAULT_AHEAD = timedelta(hours=1)


@dataclass(frozen=True)
class Bounded:
    """Records come at most `delay` behind the latest one of their partition; later ones are late.

    The stream's watermark is the minimum over its partitions. A partition without records for `idle` (wall clock) is left
    out of it; when all are silent, windows close all the same. A record more than `max_ahead` before the wall clock is a
    dead letter, so that one bad time cannot close every window.
    """

    delay: timedelta
    idle: timedelta | None = None
    max_ahead: timedelta = DEFAULT_AHEAD

    def __post_init__(self) -> None:
        if self.delay < timedelta(0):
            raise PlanError(f"a watermark {spelled(self.delay)} behind would run ahead of the records", hint="give zero or more")
        if self.idle is not None and self.idle <= timedelta(0):
            raise PlanError(
                "idle=0 would leave out every partition at once", hint="give the silence after which a partition counts as idle"
            )

    def __str__(self) -> str:
        idle = f", idle after {spelled(self.idle)}" if self.idle else ""
        return f"bounded {spelled(self.delay)}{idle}"


Watermark = Bounded
