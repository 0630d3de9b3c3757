"""The step of a plan in which all changes of one row meet, where a row moves between shards when it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headrace.plan.nodes import Step


@dataclass(frozen=True)
class Meeting(Step):
    """The same changes, those of one key in one place: what is retracted by one shard and added by another is one update."""

    stateful: ClassVar[bool] = True

    @property
    def keyed_by(self) -> tuple[str, ...]:
        return self.input.keys

    @property
    def does(self) -> str:
        return f"changes of one row meet, by {', '.join(self.input.keys)}"
