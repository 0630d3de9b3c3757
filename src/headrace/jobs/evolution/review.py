"""Review of a changed app: what a run would do with the state of its job; nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.core.settings import Settings
from headrace.jobs.directory import JobDirectory
from headrace.jobs.evolution.takeover import changes_of
from headrace.plan.evolution.comparison import CHANGED, REFUSED, Decisions
from headrace.plan.plan import Plan

_ENDS = {
    "new": "the job has not begun: a run begins it",
    CHANGED: "headrace run --accept applies these changes",
    REFUSED: "steps that are marked rebuild would have to be computed from the beginning: a run is refused",
}


@dataclass(frozen=True)
class Review:
    """The changes of an app for its job; None if that has not begun."""

    app: str
    changes: Decisions | None

    @property
    def status(self) -> str:
        """`same`, `changed`, `refused`, or `new` for a job that has not begun."""
        return "new" if self.changes is None else self.changes.status

    def to_json(self) -> dict[str, Any]:
        return {"app": self.app, **({"status": self.status, "decisions": []} if self.changes is None else self.changes.to_json())}

    def __str__(self) -> str:
        lines = [] if self.changes is None else [str(self.changes)]
        return "\n".join([*lines, _ENDS.get(self.status, "the app has not changed")])


def review(plan: Plan, settings: Settings) -> Review:
    """What a run of a plan would do with the state of its job."""
    return Review(plan.name, changes_of(plan, JobDirectory(settings.home, plan.name)))
