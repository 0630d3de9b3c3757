"""The dedup step of a plan: only the first record of each key passes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.core.durations import spelled
from headrace.plan.nodes import FactsOnly, KeyedStep, StateSummary


@dataclass(frozen=True)
class Dedup(KeyedStep):
    """Only the first record of a key within `ttl` of event time; the others are duplicates. Without `ttl`, only the first ever."""

    ttl: timedelta | None

    @property
    def keys(self) -> tuple[str, ...]:
        return self.by if self.ttl is None else super().keys

    @property
    def expires_after(self) -> timedelta | None:
        return self.ttl

    @property
    def judges_lateness(self) -> bool:
        return True

    @property
    def facts_only(self) -> FactsOnly:
        return FactsOnly(
            "duplicates among",
            "when the first is retracted, those that were dropped for it are gone",
            "take the changes as facts first: .to_stream(), or leave out duplicates before the aggregation",
        )

    @property
    def does(self) -> str:
        return f"first record by {', '.join(self.by)}"

    @property
    def state_summary(self) -> StateSummary:
        if self.ttl is None:
            return StateSummary("a row per key", "none: as many as there are keys")
        return StateSummary("a row per key", f"{spelled(self.ttl)} after the last record of a key that passed")
