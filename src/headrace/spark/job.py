"""All that a job's tasks need, shipped to them as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.connectors.input import Input
from headrace.core.clock import Clock, SystemClock
from headrace.operators.program import Program
from headrace.plan.watermarks import Watermark


@dataclass(frozen=True)
class Job:
    """A program with its inputs, the log that takes its results, and how it runs."""

    id: str
    """Tells this job from every other, also from a former one of the same app: state and written epochs are its own."""
    program: Program
    inputs: Mapping[str, Input]
    watermarks: Mapping[str, Watermark | None]
    log: Path
    keys: Mapping[str, tuple[str, ...]]
    tasks: int
    rows_per_epoch: int | None = None
    until: str | None = None
    clock: Clock = SystemClock()  # noqa: RUF009 - it has no state
    topics: Mapping[str, str] = field(default_factory=dict)
    """The topic of each sink whose topic is not called like it."""

    @property
    def name(self) -> str:
        return self.program.name
