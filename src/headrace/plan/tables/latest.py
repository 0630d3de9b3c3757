"""Tables with one row for each key: what all of them have in common, and the latest record of each key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from headrace.core.durations import spelled
from headrace.plan.nodes import Node, StateSummary, TableStep


@dataclass(frozen=True)
class RowPerKey(TableStep):
    """A table with one row for each key; a key without records for `ttl` of event time expires."""

    tabular: ClassVar[bool] = True
    at_hand: ClassVar[bool] = True

    ttl: timedelta | None

    @property
    def keys(self) -> tuple[str, ...]:
        return self.keyed_by

    @property
    def expires_after(self) -> timedelta | None:
        return self.ttl

    @property
    def settles(self) -> timedelta | None:
        return self.ttl

    def constant(self, name: str) -> Any:
        return self.input.constant(name)

    @property
    def snapshots(self) -> bool:
        return True

    @property
    def state_summary(self) -> StateSummary:
        kept = "none: as many as there are keys" if self.ttl is None else f"{spelled(self.ttl)} after a key's last record"
        return StateSummary("a row per key", kept)


@dataclass(frozen=True)
class ToTable(RowPerKey):
    """The latest record per key."""

    key: tuple[str, ...]

    @property
    def keyed_by(self) -> tuple[str, ...]:
        return self.key

    @property
    def latest_by(self) -> tuple[str, ...]:
        return self.key

    @property
    def versions(self) -> Node | None:
        return None if self.input.revises else self.input

    @property
    def does(self) -> str:
        return f"latest record by {', '.join(self.key)}"
