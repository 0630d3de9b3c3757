"""The step of a plan that lays the record of a key before each record beside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from headrace.core.durations import spelled
from headrace.plan.nodes import Memory, Step

PREVIOUS = "previous_"


@dataclass(frozen=True)
class WithPrevious(Step):
    """Each record, with columns of the record of its key before it in event time, if that is less than `ttl` before."""

    stateful: ClassVar[bool] = True

    by: tuple[str, ...]
    taken: tuple[str, ...]
    ttl: timedelta | None

    @property
    def gathers(self) -> bool:
        return True

    @property
    def does(self) -> str:
        return f"with {', '.join(self.taken)} of the previous record by {', '.join(self.by)}"

    @property
    def memory(self) -> Memory:
        kept = "none: as many as there are keys" if self.ttl is None else f"{spelled(self.ttl)} after a key's last record"
        return Memory("records that wait for the watermark, and the last of each key", kept)
