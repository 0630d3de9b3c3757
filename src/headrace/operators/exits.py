"""Where stateless records enter an operator: judged for lateness, aggregated in part, and sent to their shard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from headrace.operators import grouping, sessions, windows
from headrace.operators.candidates import CandidateSpec
from headrace.operators.changes import CHANGED, OP, TIME, as_upserts
from headrace.operators.expressions import Compiled
from headrace.operators.flow import ROW, computed
from headrace.operators.grouping import GroupSpec, TableSpec
from headrace.operators.packet import Packet, sharded
from headrace.operators.panes import WindowSpec
from headrace.operators.remote import ready
from headrace.operators.sessions import SessionSpec
from headrace.operators.time import EpochTime
from headrace.plan.expressions import Typed

Spec = WindowSpec | SessionSpec | GroupSpec | TableSpec | CandidateSpec
ALL = "_all"


@dataclass(frozen=True)
class Entered:
    """What entering made of a batch: packets, records that are late with their window, and bad ones with their `_reason`.

    `suspects` are late unless the operator's state says otherwise.
    """

    packets: list[Packet]
    accepted: int
    late: pl.DataFrame | None = None
    bad: pl.DataFrame | None = None
    suspects: pl.DataFrame | None = None


@dataclass(frozen=True)
class Entry:
    """The way into an operator. `inputs` are the arguments of its aggregates, computed here."""

    operator: str
    spec: Spec
    inputs: tuple[tuple[str, Typed], ...] = ()

    @cached_property
    def _compiled(self) -> list[tuple[str, Compiled]]:
        return [(name, ready(typed)) for name, typed in self.inputs]

    def closing(self, moment: int) -> int:
        """The end of the last window that a moment is in."""
        spec = self.spec
        if isinstance(spec, WindowSpec):
            return (moment - spec.offset) // spec.hop * spec.hop + spec.offset + spec.size
        return moment + spec.gap if isinstance(spec, SessionSpec) else moment

    def enter(self, frame: pl.DataFrame, time: EpochTime, shards: int) -> Entered:
        spec = self.spec
        if isinstance(spec, TableSpec):
            return Entered(
                sharded(self.operator, grouping.latest(spec, frame.drop(ROW, CHANGED, strict=False)), spec.key, shards), frame.height
            )
        if isinstance(spec, CandidateSpec):
            net = as_upserts(frame.drop(ROW, CHANGED, strict=False), (*spec.key, *spec.own))
            return Entered(sharded(self.operator, net, spec.key, shards), frame.height)
        kept = [name for name in (*spec.by, TIME, ROW, OP) if name in frame.columns]
        made, bad = computed(frame, self._compiled, kept)
        if ALL in spec.by:
            made = made.with_columns(pl.lit(0).alias(ALL))
        if isinstance(spec, GroupSpec):
            return Entered(self._send(grouping.aggregate(spec, made), spec.by, shards), made.height, bad=bad)
        if isinstance(spec, WindowSpec):
            return self._windows(spec, made, bad, time, shards)
        return self._sessions(spec, made, bad, time, shards)

    def _windows(self, spec: WindowSpec, made: pl.DataFrame, bad: pl.DataFrame | None, time: EpochTime, shards: int) -> Entered:
        late = None
        # If the earliest record is not late, none is.
        if made.select(pl.col(TIME).min()).select(windows.late(spec, time)).item():
            is_late = made.select(windows.late(spec, time).alias("late")).get_column("late")
            end = spec.last_end_of(pl.col(TIME))
            late = made.filter(is_late).with_columns((end - spec.size).alias(sessions.START), end.alias(sessions.STOP))
            made = made.filter(~is_late)
        return Entered(self._send(windows.aggregate(spec, made), spec.by, shards), made.height, late, bad)

    def _sessions(self, spec: SessionSpec, made: pl.DataFrame, bad: pl.DataFrame | None, time: EpochTime, shards: int) -> Entered:
        doubtful = made.select(sessions.suspect(spec, time).alias("doubtful")).get_column("doubtful")
        suspects = None
        if doubtful.any():
            suspects, made = made.filter(doubtful), made.filter(~doubtful)
        return Entered(self._send(sessions.aggregate(spec, made), spec.by, shards), made.height, bad=bad, suspects=suspects)

    def _send(self, partial: pl.DataFrame, by: tuple[str, ...], shards: int) -> list[Packet]:
        return sharded(self.operator, partial, by, shards) if partial.height else []
