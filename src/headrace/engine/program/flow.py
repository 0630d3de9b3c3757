"""The stateless part of a plan: steps that judge each record by itself, and the exits to operators and sinks after them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from headrace.engine.packet import Exit
from headrace.engine.spark_answers import ANSWER, ready
from headrace.operators.changes import as_facts
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.expressions import REASON, Compiled
from headrace.operators.scoring import Scored, Scoring
from headrace.plan.expressions import Typed


@dataclass(frozen=True)
class Sieve:
    """Only records for which the condition is true."""

    name: str
    condition: Typed


@dataclass(frozen=True)
class Project:
    """New columns in place of the old; those of the engine (with an underscore) stay."""

    name: str
    columns: tuple[tuple[str, Typed], ...]


@dataclass(frozen=True)
class Unnest:
    """One record for each element of an array; a record with an empty or null array is filtered out."""

    name: str
    expression: Typed
    into: str


@dataclass(frozen=True)
class ChangesAsFacts:
    """The changes of a table as facts, with `op`; `key` identifies the table's records."""

    name: str
    key: tuple[str, ...]


@dataclass(frozen=True)
class Scores:
    """Records with the score that a model gives each of them."""

    name: str
    scoring: Scoring


Step = Sieve | Project | Unnest | ChangesAsFacts | Scores


@dataclass(frozen=True)
class StepOutcome:
    """The result of a step for a batch: records that continue, the number of filtered ones, and bad ones with their `_reason`."""

    frame: pl.DataFrame
    filtered: int = 0
    bad: pl.DataFrame | None = None
    scored: Scored | None = None


@dataclass(frozen=True)
class CompiledStep:
    """A step with its expressions compiled, made once and used for every batch."""

    step: Step

    @cached_property
    def _compiled(self) -> list[tuple[str, Compiled]]:
        step = self.step
        if isinstance(step, Sieve):
            return [("_true", ready(step.condition))]
        if isinstance(step, Unnest):
            return [(step.into, ready(step.expression))]
        if isinstance(step, ChangesAsFacts | Scores):
            return []
        return [(name, ready(typed)) for name, typed in step.columns]

    def run(self, frame: pl.DataFrame, time: EpochTime) -> StepOutcome:
        step = self.step
        if isinstance(step, ChangesAsFacts):
            facts = as_facts(frame, step.key, time.before)
            return StepOutcome(facts, frame.height - facts.height)
        if isinstance(step, Scores):
            made, bad, scored = step.scoring.timed(frame)
            return StepOutcome(made, 0, bad, scored)
        kept = [name for name in frame.columns if not isinstance(step, Project) or name.startswith("_")]
        kept = [name for name in kept if name not in {name for name, _ in self._compiled}]
        kept = [name for name in kept if not name.startswith(ANSWER)]
        made, bad = computed(frame, self._compiled, kept)
        if isinstance(step, Sieve):
            passed = made[kept].filter(made.get_column("_true"))
            return StepOutcome(passed, made.height - passed.height, bad)
        if isinstance(step, Unnest):
            full = made.filter(pl.col(step.into).list.len() > 0)
            return StepOutcome(full.explode(step.into), made.height - full.height, bad)
        order = [name for name, _ in step.columns]
        return StepOutcome(made[[*order, *kept]], 0, bad)


def computed(frame: pl.DataFrame, columns: list[tuple[str, Compiled]], kept: list[str]) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """The kept columns and new ones, and the records that an expression could not be computed for."""
    values = [compiled.value.alias(name) for name, compiled in columns]
    errors = [compiled.error for _, compiled in columns if compiled.error is not None]
    if not columns:
        return frame[kept], None
    if not errors:
        return frame.select(*kept, *values), None
    result = frame.select(*kept, *values, pl.coalesce(errors).alias(REASON))
    failed = result.get_column(REASON).is_not_null()
    if not failed.any():
        return result[result.columns[:-1]], None
    bad = frame.filter(failed).with_columns(result.get_column(REASON).filter(failed))
    return result.filter(~failed).drop(REASON), bad


@dataclass(frozen=True)
class Flow:
    """Steps in their order, then the exits and further flows, which all get the remaining records."""

    steps: tuple[Step, ...] = ()
    exits: tuple[Exit, ...] = ()
    branches: tuple[Flow, ...] = ()
    stages: tuple[CompiledStep, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(CompiledStep(step) for step in self.steps))
