"""The description of a job for readers outside of it: streams, steps, views and sinks, as one JSON file in its directory.

Each run writes it again, so that a server or a page can show a job without loading its app.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace.core.columns.schema import ddl
from headrace.core.durations import spelled
from headrace.core.errors import JobError
from headrace.core.files.replacing import replace_text
from headrace.jobs.facts.described_time import plain
from headrace.plan.explain import explained
from headrace.plan.plan import Output, Plan

FILE = "description.json"


@dataclass(frozen=True)
class DescribedStep:
    """A stream or step: what it does in words, what it reads, and its columns."""

    name: str
    kind: str
    does: str
    reads: tuple[str, ...]
    columns: str
    keeps: str
    bound: str
    watermark: dict[str, Any] | None = None
    """How the watermark of a stream follows its records."""
    window: dict[str, Any] | None = None
    """The windows of a step, where event time alone decides when they close."""


@dataclass(frozen=True)
class DescribedOutput:
    """A view or sink. `topic` is its topic in the log; empty for a target elsewhere."""

    name: str
    kind: str
    does: str
    reads: str
    columns: str
    key: tuple[str, ...]
    topic: str


@dataclass(frozen=True)
class JobDescription:
    """A job as its last run declared it."""

    app: str
    steps: tuple[DescribedStep, ...]
    outputs: tuple[DescribedOutput, ...]
    alerts: tuple[dict[str, str], ...] = ()
    """Name, condition, `for` and message of each alert that the app declares."""

    @property
    def views(self) -> tuple[DescribedOutput, ...]:
        return tuple(output for output in self.outputs if output.kind == "view")

    def write(self, directory: Path) -> None:
        """Put it into the directory of the job."""
        replace_text(directory / FILE, json.dumps(asdict(self), indent=1))


def description_of(plan: Plan) -> JobDescription:
    """Describe a plan."""
    words = {step.step: step for step in explained(plan).steps}
    steps = [
        DescribedStep(
            node.name,
            "stream" if node.declared_stream else "operator" if node.stateful else "step",
            words[node.name].does,
            tuple(before.name for before in node.inputs),
            ddl(node.columns),
            words[node.name].state,
            words[node.name].bound,
            None if node.rule is None else plain(node.rule),
            None if node.windowing is None else plain(node.windowing),
        )
        for node in plan.nodes
    ]
    alerts = [
        {"name": alert.name, "condition": alert.condition, "for": spelled(alert.held_for), "message": alert.message}
        for alert in plan.alerts
    ]
    return JobDescription(plan.name, tuple(steps), tuple(_output(output) for output in plan.outputs), tuple(alerts))


def read_description(directory: Path) -> JobDescription | None:
    """The description in the directory of a job; None before its first run."""
    try:
        text = (directory / FILE).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        content: dict[str, Any] = json.loads(text)
        steps = tuple(DescribedStep(**{**step, "reads": tuple(step["reads"])}) for step in content["steps"])
        outputs = tuple(DescribedOutput(**{**output, "key": tuple(output["key"])}) for output in content["outputs"])
        return JobDescription(content["app"], steps, outputs, tuple(content.get("alerts", ())))
    except (ValueError, KeyError, TypeError) as error:
        raise JobError(
            f"the description of job {directory.name!r} cannot be read: {error}",
            why="it is damaged, or another version of Headrace wrote it",
            hint="the next run of the job writes it again",
        ) from error


def _output(output: Output) -> DescribedOutput:
    return DescribedOutput(
        output.name,
        output.kind,
        output.does,
        output.node.name,
        ddl(output.node.columns),
        output.folds_by,
        output.topic or "",
    )
