"""The promise of a target: what it can take, what it guarantees, and how. Plans check it, `explain` and the docs say it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Takes(Enum):
    """The results that a target can take."""

    FACTS = "facts only"
    """It can only be appended to."""
    CHANGES = "facts, and changes by key"
    """Rows of results that change are replaced and removed; facts are appended."""
    LATEST = "the latest row of each key"
    """Facts with a key also replace earlier ones."""


@dataclass(frozen=True)
class Promise:
    """What a target takes, how often each record has its effect, the mechanism, and when readers see an epoch."""

    takes: Takes
    delivery: str
    mechanism: str
    visible: str

    def __str__(self) -> str:
        return f"{self.delivery}: {self.mechanism}"


# Of topics of the log, and of views, which are such topics.
IN_LOG = Promise(
    Takes.CHANGES,
    "exactly once",
    "each append has its writer and epoch in its header; an epoch that is already stored is skipped",
    "a task's epoch at once",
)
