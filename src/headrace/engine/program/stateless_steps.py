"""Stateless steps at work: a class for each kind of step, registered for its node with `steps_of`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch

import polars as pl

from headrace.engine.program.computed_columns import computed
from headrace.engine.program.flow import StatelessStep, StepOutcome
from headrace.engine.spark_answers import ANSWER, ready
from headrace.operators.changes import as_facts
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.expressions import Compiled
from headrace.operators.frames import columns_of, rows_where
from headrace.operators.nulls import filled
from headrace.operators.scoring import Scoring
from headrace.plan.expressions import Typed
from headrace.plan.nodes import Node
from headrace.plan.scoring import Score
from headrace.plan.steps import Explode, KeyBy, Select, ToStream, Union, Where, WithPlace

_TRUE = "_true"


@singledispatch
def steps_of(node: Node) -> tuple[StatelessStep, ...]:
    """The steps that compute the records of a node without state; none where they are the records of its inputs."""
    raise TypeError(f"{type(node).__name__} is not a stateless step")


@dataclass(frozen=True)
class Sieve:
    """Only records for which the condition is true."""

    name: str
    condition: Typed

    def run(self, frame: pl.DataFrame, time: EpochTime) -> StepOutcome:
        kept = _others(frame, (_TRUE,))
        made, bad = computed(frame, self._compiled, kept)
        passed = rows_where(columns_of(made, kept), filled(made.get_column(_TRUE), value=False))
        return StepOutcome(passed, made.height - passed.height, bad)

    @cached_property
    def _compiled(self) -> list[tuple[str, Compiled]]:
        return [(_TRUE, ready(self.condition))]


@dataclass(frozen=True)
class Project:
    """New columns in place of the old; those of the engine (with an underscore) stay."""

    name: str
    columns: tuple[tuple[str, Typed], ...]

    def run(self, frame: pl.DataFrame, time: EpochTime) -> StepOutcome:
        order = [name for name, _ in self.columns]
        kept = [name for name in _others(frame, order) if name.startswith("_")]
        made, bad = computed(frame, self._compiled, kept)
        return StepOutcome(columns_of(made, [*order, *kept]), 0, bad)

    @cached_property
    def _compiled(self) -> list[tuple[str, Compiled]]:
        return [(name, ready(typed)) for name, typed in self.columns]


@dataclass(frozen=True)
class AddedPlace:
    """Records with their partition and offset as a struct."""

    name: str
    into: str

    def run(self, frame: pl.DataFrame, time: EpochTime) -> StepOutcome:
        place = pl.struct(pl.col(PARTITION).cast(pl.Int32).alias("partition"), pl.col(OFFSET).cast(pl.Int64).alias("offset"))
        return StepOutcome(frame.with_columns_seq(place.alias(self.into)))


@dataclass(frozen=True)
class Unnest:
    """One record for each element of an array; a record with an empty or null array is filtered out."""

    name: str
    expression: Typed
    into: str

    def run(self, frame: pl.DataFrame, time: EpochTime) -> StepOutcome:
        made, bad = computed(frame, self._compiled, _others(frame, (self.into,)))
        full = made.filter(pl.col(self.into).list.len() > 0)
        return StepOutcome(full.explode(self.into), made.height - full.height, bad)

    @cached_property
    def _compiled(self) -> list[tuple[str, Compiled]]:
        return [(self.into, ready(self.expression))]


@dataclass(frozen=True)
class ChangesAsFacts:
    """The changes of a table as facts, with `op`; `key` identifies the table's records."""

    name: str
    key: tuple[str, ...]

    def run(self, frame: pl.DataFrame, time: EpochTime) -> StepOutcome:
        facts = as_facts(frame, self.key, time.before)
        return StepOutcome(facts, frame.height - facts.height)


@dataclass(frozen=True)
class Scores:
    """Records with the score that a model gives each of them."""

    name: str
    scoring: Scoring

    def run(self, frame: pl.DataFrame, time: EpochTime) -> StepOutcome:
        made, bad, scored = self.scoring.timed(frame)
        return StepOutcome(made, 0, bad, scored)


def _others(frame: pl.DataFrame, computed_names: Sequence[str]) -> list[str]:
    """The columns of a frame that stay as they are; answers of Spark's are used up."""
    return [name for name in frame.columns if name not in computed_names and not name.startswith(ANSWER)]


@steps_of.register
def _(node: Where) -> tuple[StatelessStep, ...]:
    return (Sieve(node.name, node.condition),)


@steps_of.register
def _(node: Select) -> tuple[StatelessStep, ...]:
    return (Project(node.name, node.made),)


@steps_of.register
def _(node: Explode) -> tuple[StatelessStep, ...]:
    return (Unnest(node.name, node.array, node.into),)


@steps_of.register
def _(node: WithPlace) -> tuple[StatelessStep, ...]:
    return (AddedPlace(node.name, node.into),)


@steps_of.register
def _(node: ToStream) -> tuple[StatelessStep, ...]:
    return (ChangesAsFacts(node.name, node.input.keys),)


@steps_of.register
def _(node: Score) -> tuple[StatelessStep, ...]:
    return (Scores(node.name, Scoring(node.model, node.taken, node.output)),)


@steps_of.register
def _(_: KeyBy | Union) -> tuple[StatelessStep, ...]:
    return ()
