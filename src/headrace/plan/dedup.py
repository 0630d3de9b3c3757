"""The step of a plan that lets the first record of each key go on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from headrace.core.durations import spelled
from headrace.plan.nodes import Memory, Step


@dataclass(frozen=True)
class Dedup(Step):
    """Only the first record of a key within `ttl` of event time; the others are duplicates. Without `ttl` only the first ever."""

    stateful: ClassVar[bool] = True

    by: tuple[str, ...]
    ttl: timedelta | None

    @property
    def keys(self) -> tuple[str, ...]:
        return self.by if self.ttl is None else super().keys

    @property
    def gathers(self) -> bool:
        return True

    @property
    def does(self) -> str:
        return f"first record by {', '.join(self.by)}"

    @property
    def memory(self) -> Memory:
        if self.ttl is None:
            return Memory("a row a key", "none: as many as there are keys")
        return Memory("a row a key", f"{spelled(self.ttl)} after the last record of a key that went on")
