"""The step of a plan that scores records with a model: an ONNX file, or a function over Arrow batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.plan.nodes import FactsOnly, Step


@dataclass(frozen=True)
class OnnxFile:
    """A model in a file; `digest` is that of its contents when it was declared, which every worker must find."""

    path: Path
    digest: str

    def __str__(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class Scorer:
    """A function from a table of inputs to one value a row."""

    function: Callable[[pa.Table], Any] = field(compare=False)

    def __str__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


Model = OnnxFile | Scorer


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
