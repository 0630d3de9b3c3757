"""A plan in words: what each step does, what evaluates it, its state and how long it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headrace.plan.nodes import Node, StateSummary
from headrace.plan.plan import Plan

HEADRACE, SPARK = "headrace", "spark"


@dataclass(frozen=True)
class StepInWords:
    """One step or output of a plan. `reason` says why Spark must evaluate it, where Headrace does not do so itself."""

    step: str
    does: str
    reads: str
    evaluated_by: str
    reason: str
    state: str
    bound: str
    hot_keys: str = ""
    """The cost of a key with very many records, and the keys that a run has found."""
    colocated: str = ""
    """Why it has no tasks of its own, where it has none."""
    promise: str = ""
    """The guarantee of a view or sink to its readers, and its mechanism."""
    size: str = ""
    """How much it keeps after the last epoch of its job."""


@dataclass(frozen=True)
class Explanation:
    """A plan in words. `shards` is the number of parts of a step's state, None before the job's first run."""

    steps: tuple[StepInWords, ...]
    shards: int | None = None

    def __str__(self) -> str:
        spread = "one for each core, fixed by the first run" if self.shards is None else self.shards
        lines = [f"shards: {spread}"]
        for words in self.steps:
            lines += [words.step, f"  {words.does}"]
            lines += [f"  reads {words.reads}"] if words.reads else []
            lines += [f"  evaluated by {words.evaluated_by}{f', because {words.reason}' if words.reason else ''}{words.colocated}"]
            lines += [f"  keeps {words.state}, bound: {words.bound}{f'; now {words.size}' if words.size else ''}"] if words.bound else []
            lines += [f"  {words.promise}"] if words.promise else []
            lines += [f"  hot keys: {words.hot_keys}"] if words.hot_keys else []
        return "\n".join(lines)


def explained(
    plan: Plan, shards: int | None = None, found: Mapping[str, str] | None = None, sizes: Mapping[str, str] | None = None
) -> Explanation:
    """Every step in the order records meet them, then the views and sinks.

    `found` has the hot keys that a run has met at a step, `sizes` the state size of each step.
    """
    steps = [replace(_in_words(node, (found or {}).get(node.name, "")), size=(sizes or {}).get(node.name, "")) for node in plan.nodes]
    outputs = [
        replace(_words(output.name, output.does, output.node.name, "", StateSummary()), promise=output.promise) for output in plan.outputs
    ]
    return Explanation((*steps, *outputs), shards)


def identity(plan: Plan) -> str:
    """What must stay the same for a job to keep its state: one line for each step."""
    return "\n".join(f"{words.step}: {words.does}{f' of {words.reads}' if words.reads else ''}" for words in explained(plan).steps)


def _in_words(node: Node, found: str) -> StepInWords:
    words = _words(node.name, node.does, ", ".join(before.name for before in node.inputs), node.foreign, node.state_summary)
    if not node.stateful:
        return words
    cost = "aggregated before the shuffle, so a hot key costs no more than others"
    if node.gathers:
        cost = f"all records of {', '.join(node.spread_by) or 'a key'} go to one shard"
    if node.colocated_with:
        words = replace(words, colocated=f", in the tasks of {node.colocated_with!r}, because all rows that it may need are there")
    return replace(words, hot_keys=f"{cost}{f'; {found}' if found else ''}")


def _words(step: str, does: str, reads: str, reason: str, memory: StateSummary) -> StepInWords:
    return StepInWords(step, does, reads, SPARK if reason else HEADRACE, reason, memory.state, memory.bound)
