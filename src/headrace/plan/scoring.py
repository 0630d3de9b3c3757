"""The steps of a plan that score records with a model: an ONNX file, a function over Arrow batches, or the newest row of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from headrace.core.columns.schema import type_name
from headrace.core.errors import PlanError
from headrace.plan.joins.join import LEFT, RIGHT
from headrace.plan.nodes import FactsOnly, Node, StateSummary, Step, facts_first

# The columns of a table of models.
VERSION, CONTENTS = "version", "model"


@dataclass(frozen=True)
class OnnxFile:
    """A model in a file; `digest` is that of its contents when it was declared, which every worker must find."""

    path: Path
    digest: str

    def __str__(self) -> str:
        return self.path.name

    @property
    def version(self) -> str:
        return f"{self.path.name} {self.digest[:12]}"


@dataclass(frozen=True)
class Scorer:
    """A function from a table of inputs to one value a row."""

    function: Callable[[pa.Table], Any] = field(compare=False)

    def __str__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def version(self) -> str:
        return str(self)


@dataclass(frozen=True)
class OnnxModel:
    """A version of a model, as a row of a table has it."""

    version: str
    contents: bytes = field(repr=False)

    def __str__(self) -> str:
        return f"model version {self.version}"


Model = OnnxFile | Scorer | OnnxModel


@dataclass(frozen=True)
class Score(Step):
    """Each record with the score that a model gives it, as the last column."""

    model: Model = field(compare=False)
    taken: tuple[str, ...]
    output: pa.Field

    @property
    def facts_only(self) -> FactsOnly:
        return FactsOnly("scores of", "a model need not say the same of a result again when that is retracted")

    @property
    def does(self) -> str:
        return f"score with {self.model} of {', '.join(self.taken)} as {self.output.name}"


@dataclass(frozen=True)
class ScoreByTable(Node):
    """Each record with the score of the model that a table has in that epoch: of its rows the one with the greatest version.

    `by` are the columns by which records are spread over shards, of which every one has all models. `version` names the column with the
    version that made a score; empty: there is none.
    """

    stateful: ClassVar[bool] = True

    input: Node
    models: Node
    by: tuple[str, ...]
    taken: tuple[str, ...]
    output: pa.Field
    version: str = ""

    def __post_init__(self) -> None:
        if self.input.revises:
            raise PlanError(
                f"scores of {self.input.name!r}, whose results change",
                why="another model may be in force when a result is retracted",
                hint=facts_first(self.input),
                where=self.where,
            )
        columns = {name: self.models.columns.field(name).type for name in (VERSION, CONTENTS) if name in self.models.columns.names}
        if len(columns) < 2 or not pa.types.is_binary(columns[CONTENTS]) or pa.types.is_nested(columns[VERSION]):
            said = ", ".join(f"{name} {type_name(kind)}" for name, kind in columns.items()) or "neither"
            raise PlanError(
                f"the table of models {self.models.name!r} needs the columns version and model, and has {said}",
                hint='schema="version int, model binary": the contents of an ONNX file',
                where=self.where,
            )

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, self.models)

    @property
    def ports(self) -> tuple[str, ...]:
        return (LEFT, RIGHT)

    @property
    def awaited(self) -> tuple[Node, ...]:
        return (self.models,)

    @property
    def followed(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def gathers(self) -> bool:
        return True

    @property
    def spread_by(self) -> tuple[str, ...]:
        return self.by

    @property
    def keys(self) -> tuple[str, ...]:
        return self.input.keys

    @property
    def does(self) -> str:
        return f"score with the newest model of {self.models.name} of {', '.join(self.taken)} as {self.output.name}"

    @property
    def state_summary(self) -> StateSummary:
        return StateSummary("the table of models, on every shard", f"as many rows as {self.models.name!r} has")
