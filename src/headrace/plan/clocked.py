"""Windows by the wall clock, for those who ask for them by name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import pyarrow as pa

from headrace.plan.emit import Emit
from headrace.plan.nodes import Memory
from headrace.plan.windows import BOUNDS, Hopping


@dataclass(frozen=True)
class ProcessingTime:
    """Windows of the wall clock at which a job takes records in, whatever their event time: nothing in them is ever late."""

    columns: ClassVar[tuple[pa.Field, ...]] = BOUNDS
    identity: ClassVar[tuple[str, ...]] = ("window_start",)

    window: Hopping

    def memory(self, kept: timedelta, emit: Emit) -> Memory:
        found = self.window.memory(timedelta(0), emit)
        return Memory(found.state, found.bound.replace("the watermark", "the wall clock"))

    def __str__(self) -> str:
        return f"processing time, {self.window}"
