"""Where stateless records enter an operator: arguments computed, judged for lateness, and sent to their shard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from headrace.operators.changes import CHANGED, OP, TIME
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

    @property
    def spec(self) -> Spec:
        return self.made.spec

    @cached_property
    def _compiled(self) -> list[tuple[str, Compiled]]:
        return [(name, ready(typed)) for name, typed in self.made.arguments or ()]

    def enter(self, frame: pl.DataFrame, time: EpochTime) -> tuple[Entered, pl.DataFrame | None]:
        """What entering made of a batch, and the records whose arguments could not be computed, with their `_reason`."""
        if self.made.arguments is None:
            return self.spec.enter(frame.drop(CHANGED, strict=False), time), None
        kept = [name for name in (*self.spec.by, TIME, ROW, OP) if name in frame.columns]
        records, bad = computed(frame, self._compiled, kept)
        if ALL in self.spec.by:
            records = records.with_columns(pl.lit(0).alias(ALL))
        return self.spec.enter(records, time), bad

    def packets(self, rows: pl.DataFrame, shards: int) -> list[Packet]:
        return sharded(self.operator, rows, self.spec.by, shards) if rows.height else []
