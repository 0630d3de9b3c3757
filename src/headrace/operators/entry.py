"""Where stateless records enter an operator: arguments computed, judged for lateness, and sent to their shard."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from headrace.operators.changes import CHANGED, OP, TIME, added
from headrace.operators.contract import Entered, Made, Spec
from headrace.operators.expressions import Compiled
from headrace.operators.flow import ROW, computed
from headrace.operators.packet import Packet, sharded
from headrace.operators.remote import ready
from headrace.operators.time import EpochTime

# The key of what is computed over all records.
ALL = "_all"


@dataclass(frozen=True)
class Entry:
    """The way into an operator."""

    operator: str
    made: Made
    signed: bool = False
    """Whether it takes in changes, perhaps united with facts."""

    @property
    def spec(self) -> Spec:
        return self.made.spec

    @cached_property
    def _compiled(self) -> list[tuple[str, Compiled]]:
        return [(name, ready(typed)) for name, typed in self.made.arguments or ()]

    def enter(self, frame: pl.DataFrame, time: EpochTime) -> Entered:
        """What entering made of a batch. Records whose arguments could not be computed are bad."""
        frame = _in_one_form(frame, self.spec.by)
        if self.signed and OP not in frame.columns:
            frame = added(frame)
        if self.made.arguments is None:
            return self.spec.enter(frame.drop(CHANGED, strict=False), time)
        kept = [name for name in (*self.spec.by, TIME, ROW, OP) if name in frame.columns]
        records, bad = computed(frame, self._compiled, kept)
        if ALL in self.spec.by:
            records = records.with_columns(pl.lit(0).alias(ALL))
        entered = self.spec.enter(records, time)
        if bad is None:
            return entered
        return replace(entered, bad=bad if entered.bad is None else pl.concat([entered.bad, bad], how="diagonal"))

    def packets(self, rows: pl.DataFrame, shards: int) -> list[Packet]:
        return sharded(self.operator, rows, self.spec.by, shards) if rows.height else []


def _in_one_form(frame: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """Records whose keys have the same bits where they are equal, as in Spark: there are two zeros, and many that are no number."""
    floats = [name for name in by if name in frame.columns and frame.schema[name].is_float()]
    if not floats:
        return frame
    return frame.with_columns(pl.when(pl.col(name).is_nan()).then(math.nan).otherwise(pl.col(name) + 0.0).alias(name) for name in floats)
