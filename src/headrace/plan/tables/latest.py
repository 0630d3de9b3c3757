"""The table step of a plan, which keeps the latest record of each key, and the memory of such steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.core.durations import spelled
from headrace.plan.nodes import StateSummary, TableStep


@dataclass(frozen=True)
class ToTable(TableStep):
    """The latest record per key."""

    key: tuple[str, ...]
    ttl: timedelta | None

    @property
    def keys(self) -> tuple[str, ...]:
        return self.key

    @property
    def keyed_by(self) -> tuple[str, ...]:
        return self.key

    @property
    def expires_after(self) -> timedelta | None:
        return self.ttl

    @property
    def tabular(self) -> bool:
        return True

    @property
    def at_hand(self) -> bool:
        return True

    @property
    def settles(self) -> timedelta | None:
        return self.ttl

    @property
    def does(self) -> str:
        return f"latest record by {', '.join(self.key)}"

    @property
    def snapshots(self) -> bool:
        return True

    @property
    def state_summary(self) -> StateSummary:
        return row_a_key(self.ttl)


def row_a_key(ttl: timedelta | None) -> StateSummary:
    """The memory of a step that keeps one row for each key until it has been silent for `ttl`."""
    return StateSummary(
        "a row a key", f"{spelled(ttl)} after a key's last record" if ttl is not None else "none: as many as there are keys"
    )
