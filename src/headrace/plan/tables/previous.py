"""The step of a plan that adds to each record columns of the previous one of its key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from headrace.core.durations import spelled
from headrace.plan.nodes import FactsOnly, KeyedStep, StateSummary

PREVIOUS = "previous_"


@dataclass(frozen=True)
class WithPrevious(KeyedStep):
    """Each record, with columns of the previous record of its key in event time, if that is less than `ttl` before."""

    ordered: ClassVar[bool] = True

    taken: tuple[str, ...]
    ttl: timedelta | None

    @property
    def expires_after(self) -> timedelta | None:
        return self.ttl

    @property
    def waits(self) -> bool:
        return True

    @property
    def facts_only(self) -> FactsOnly:
        return FactsOnly("previous records of", "a result that is retracted was the previous one of others already")

    @property
    def does(self) -> str:
        return f"with {', '.join(self.taken)} of the previous record by {', '.join(self.by)}"

    @property
    def state_summary(self) -> StateSummary:
        kept = "none: as many as there are keys" if self.ttl is None else f"{spelled(self.ttl)} after a key's last record"
        return StateSummary("records that wait for the watermark, and the last of each key", kept)
