"""Entry of records into a port of an operator: arguments computed, judged for lateness, and sent to their shard."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from headrace.core.columns.moments import FIRST, LAST
from headrace.engine.packet import ROWS, Exit, Packet, sharded
from headrace.engine.program.computed_columns import computed
from headrace.engine.spark_answers import ready
from headrace.operators.changes import CHANGED, OP, TIME, added
from headrace.operators.columns import ALL, ROW
from headrace.operators.contract import Entered, Port
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.expressions import REASON, Compiled
from headrace.operators.frames import with_constant
from headrace.operators.nulls import filled


@dataclass(frozen=True)
class Entry:
    """The way into a port of an operator."""

    exit: Exit
    port: Port
    signed: bool = False
    """Whether it takes in changes, perhaps merged with facts."""
    scattered: bool = False
    """Whether the changes of one row may come from several shards: the retraction from one, the addition from another."""

    @property
    def by(self) -> tuple[str, ...]:
        return self.port.entrance.by

    @cached_property
    def _compiled(self) -> list[tuple[str, Compiled]]:
        return [(name, ready(typed)) for name, typed in self.port.arguments or ()]

    def enter(self, frame: pl.DataFrame, time: EpochTime) -> Entered:
        """The result of entering a batch. Records whose arguments could not be computed are bad."""
        frame, outside = self._inside(_in_one_form(frame, {*self.by, *self.port.compared}))
        return _with_bad(self._entered(frame, time), outside)

    def _entered(self, frame: pl.DataFrame, time: EpochTime) -> Entered:
        if self.signed and OP not in frame.columns:
            frame = added(frame)
        if self.port.arguments is None:
            return self.port.entrance.enter(frame.drop(CHANGED) if CHANGED in frame.columns else frame, time)
        kept = [name for name in (*self.by, TIME, ROW, OP) if name in frame.columns]
        records, bad = computed(frame, self._compiled, kept)
        if ALL in self.by:
            records = with_constant(records, ALL, 0, pl.Int32)
        return _with_bad(self.port.entrance.enter(records, time), bad)

    def _inside(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Records whose windows are in the years of the calendar, and those whose windows would not be."""
        if not self.port.reach or TIME not in frame.columns:
            return frame, None
        times, first, last = frame.get_column(TIME), FIRST + self.port.reach, LAST - self.port.reach
        known = filled(times, first)
        if ((known >= first) & (known <= last)).all():
            return frame, None
        inside = times.is_between(first, last).fill_null(True)
        reason = pl.lit("its window would reach beyond the years 1 to 9999").alias(REASON)
        return frame.filter(inside), frame.filter(~inside).with_columns_seq(reason)

    def packets(self, rows: pl.DataFrame, shards: int) -> list[Packet]:
        """Entered rows as packets: to the shard of their key, or to every shard."""
        if not rows.height:
            return []
        if self.port.broadcast:
            return [Packet(self.exit.target, shard, rows, port=self.exit.port) for shard in range(shards)]
        return sharded(self.exit, rows, self.by, shards)

    def arrived(self, packets: Sequence[Packet]) -> list[pl.DataFrame]:
        """The rows that arrived at this port of a shard. Of scattered changes, retractions come first, so that the last one is the live
        row."""
        frames = [packet.frame for packet in packets if packet.kind == ROWS and packet.port == self.exit.port]
        if len(frames) < 2 or not self.scattered or OP not in frames[0].columns:
            return frames
        return [pl.concat(frames, how="diagonal").sort(OP, maintain_order=True)]


def _with_bad(entered: Entered, bad: pl.DataFrame | None) -> Entered:
    """The same result with further bad records."""
    if bad is None:
        return entered
    return replace(entered, bad=bad if entered.bad is None else pl.concat([entered.bad, bad], how="diagonal"))


def _in_one_form(frame: pl.DataFrame, by: Iterable[str]) -> pl.DataFrame:
    """Records whose keys have the same bits where they are equal, as in Spark: there are two zeros, and many forms of NaN."""
    floats = [name for name in by if name in frame.columns and frame.schema[name].is_float()]
    if not floats:
        return frame
    # Not `+ 0.0`: polars optimizes that away.
    return frame.with_columns_seq(
        pl.when(pl.col(name).is_nan()).then(math.nan).when(pl.col(name) == 0.0).then(0.0).otherwise(pl.col(name)).alias(name)
        for name in floats
    )
