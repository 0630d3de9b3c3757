"""Windows by the wall clock, only by that name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from headrace.plan.nodes import StateSummary
from headrace.plan.windows.emit import Emit
from headrace.plan.windows.kinds import Hopping, Window


@dataclass(frozen=True)
class ProcessingTime(Window):
    """Windows of the wall clock at which a job reads records, whatever their event time: no record is ever late."""

    by_clock: ClassVar[bool] = True
    corrected: ClassVar[bool] = False

    window: Hopping

    def state_summary(self, kept: timedelta, emit: Emit) -> StateSummary:
        found = self.window.state_summary(timedelta(0), emit)
        return StateSummary(found.state, found.bound.replace("the watermark", "the wall clock"))

    def __str__(self) -> str:
        return f"processing time, {self.window}"
