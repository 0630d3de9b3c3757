"""Where records leave the fused steps because only Spark can evaluate the next one, and what becomes of them behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.operators.flow import Flow
from headrace.plan.expressions import Typed


@dataclass(frozen=True)
class Cut:
    """A step for Spark, behind the operators of a `level`: expressions over `columns`, or a function of the user's.

    `flow` is what follows; it begins with the step itself, which takes Spark's answers, or behind the function.
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
        """What to say where there is no Spark."""
        if self.transforms:
            fact, why = f"step {self.step!r} is a function over a PySpark DataFrame", None
        else:
            fact, why = f"step {self.step!r}: {self.expressions[0].expression.text!r} is evaluated by Spark", self.expressions[0].reason
        return PlanError(fact, why=why, hint="only a run on Spark evaluates it: app.run()", where=self.where)
