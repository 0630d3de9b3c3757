"""Steps of Spark: records leave the fused steps because only Spark can evaluate the next one, and continue after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.engine.program.flow import Flow
from headrace.plan.expressions import Typed


@dataclass(frozen=True)
class SparkStep:
    """A step for Spark, after the operators of a `level`: expressions over `columns`, or a function of the user's.

    `flow` is what follows; it begins with the step itself, which uses Spark's answers, or after the function.
    """

    name: str
    step: str
    origin: str
    level: int
    columns: pa.Schema
    flow: Flow
    expressions: tuple[Typed, ...] = ()
    function: Callable[[Any], Any] | None = field(default=None, compare=False)
    made: pa.Schema | None = None
    where: str | None = field(default=None, compare=False)

    @property
    def transforms(self) -> bool:
        return self.made is not None

    def refuse_without_spark(self) -> PlanError:
        """The error where there is no Spark."""
        if self.transforms:
            fact, why = f"step {self.step!r} is a function over a PySpark DataFrame", None
        else:
            fact, why = f"step {self.step!r}: {self.expressions[0].expression.text!r} is evaluated by Spark", self.expressions[0].reason
        return PlanError(fact, why=why, hint="only a run on Spark evaluates it: app.run()", where=self.where)
