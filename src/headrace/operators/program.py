"""A plan made ready to run: flows without state, operators with state in levels, and sinks, tied together by packets.

The same program runs in Spark, in the test driver and in the Lab; it does no I/O and knows no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import polars as pl
import pyarrow as pa

from headrace.core.schema import quoted
from headrace.operators.aggregates import FAULT
from headrace.operators.changes import CHANGED, OP, TIME
from headrace.operators.clocked import ClockedSpec
from headrace.operators.contract import Stateful
from headrace.operators.cut import Cut
from headrace.operators.entry import ALL, Entry
from headrace.operators.expressions import REASON, Compiled
from headrace.operators.expressions import compile as compiled_form
from headrace.operators.flow import Flow, computed
from headrace.operators.packet import Packet
from headrace.operators.passage import Passage, Place, Result
from headrace.operators.store import Store
from headrace.operators.time import BEGINNING, EpochTime
from headrace.plan.expressions import Typed


@dataclass(frozen=True)
class Origin:
    """A source: its columns, its event time, what follows it, and whether late records are kept."""

    name: str
    columns: pa.Schema
    time: str | None
    flow: Flow
    keeps_late: bool = True


@dataclass(frozen=True)
class Operator:
    """A stateful step: the way in, the columns it gives out, and what follows it."""

    entry: Entry
    level: int
    outputs: tuple[tuple[str, Typed], ...]
    columns: tuple[str, ...]
    flow: Flow
    origin: str
    gathers: bool = False
    """Whether all records of a key meet one by one, so that a hot one has one core."""
    beside: str = ""
    """The operator before it on whose shards it works, with all rows of that at hand."""
    upserts: bool = False
    """Whether all that follows takes a row as replacing that of its key: nothing says that a row which is replaced does not hold."""
    written: tuple[tuple[str, str], ...] = ()
    """The columns that `outputs` are over, as the user wrote them."""

    def fresh(self) -> Stateful:
        """The operator of one shard, with no state yet."""
        return self.entry.spec.fresh()

    def made(self, results: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Results with the columns that go out, and those for which these can't be computed, with their `_reason`."""
        failed = []
        if FAULT in results.columns:
            known = results.get_column(FAULT).is_null()
            failed.append(results.filter(~known).rename({FAULT: REASON}))
            results = results.filter(known).drop(FAULT)
        kept = [column for column in results.columns if column not in {c for c, _ in self._finish} and column != ALL]
        made, bad = computed(results, self._finish, kept)
        if bad is not None:
            reason = pl.col(REASON)
            for column, text in self.written:
                reason = reason.str.replace_all(quoted(column), text, literal=True)
            failed.append(bad.with_columns(reason))
        return made.select(*self.columns, TIME, OP, *([CHANGED] if CHANGED in made.columns else [])), failed

    @cached_property
    def _finish(self) -> list[tuple[str, Compiled]]:
        return [(name, compiled_form(typed)) for name, typed in self.outputs]


@dataclass(frozen=True)
class Outlet:
    """A view or sink: the columns it wants, and the key by which its records fold and spread over shards."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """Everything a job does with a record."""

    name: str
    shards: int
    origins: Mapping[str, Origin]
    operators: Mapping[str, Operator]
    outlets: Mapping[str, Outlet]
    cuts: Mapping[str, Cut] = field(default_factory=dict)

    @property
    def levels(self) -> int:
        """How many operators stand one behind the other at most."""
        return max((operator.level for operator in self.operators.values()), default=0)

    def closing(self, moment: int) -> int:
        """When everything of a moment is out: the end of the last window that it, or a result it is part of, can be in."""
        return max((self._closing(origin.flow, moment) for origin in self.origins.values()), default=moment)

    @property
    def clocked(self) -> bool:
        """Whether there are windows of the wall clock, which end without a record or a watermark that moves."""
        return bool(self._clocked)

    def due(self, before: int, clock: int, taken_at: int) -> bool:
        """Whether a window of the wall clock that may have records has ended since a moment; the last ones were taken in at `taken_at`."""
        return taken_at > BEGINNING and any(spec.next_end(before) <= min(clock, spec.last_end(taken_at)) for spec in self._clocked)

    def ingest(self, source: str, records: pl.DataFrame, time: EpochTime, limit: int) -> Result:
        """Take in a batch of a source's records, with their `_partition` and `_offset`; a time above `limit` is not believed."""
        return Passage(self, time, source).ingest(records, limit)

    def step(self, place: Place, packets: Iterable[Packet], time: EpochTime, store: Store) -> Result:
        """Let one shard of an operator take in its packets of an epoch, and time move on."""
        return Passage(self, time, self.operators[place.operator].origin, place.shard).operate(place, list(packets), store)

    def resume(self, cut: str, frame: pl.DataFrame, time: EpochTime, shard: int) -> Result:
        """Go on behind a step of Spark's, with a frame that went into it and now has its answers too."""
        declared = self.cuts[cut]
        return Passage(self, time, declared.origin, shard if declared.level else None).resume(declared, frame)

    def take_back(self, cut: str, frame: pl.DataFrame, time: EpochTime) -> Result:
        """Go on behind a function of the user's, with what it made."""
        return Passage(self, time, self.cuts[cut].origin).take_back(self.cuts[cut], frame)

    def shipped(self) -> Program:
        """The program as tasks need it: without the user's functions, which only the driver calls and which may not travel."""
        return replace(self, cuts={name: replace(cut, function=None) for name, cut in self.cuts.items()})

    @property
    def observed(self) -> frozenset[str]:
        """Steps that may drop and multiply records unseen: only what goes in and what comes out is counted."""
        return frozenset(cut.step for cut in self.cuts.values() if cut.transforms)

    @property
    def _clocked(self) -> list[ClockedSpec]:
        return [operator.entry.spec for operator in self.operators.values() if isinstance(operator.entry.spec, ClockedSpec)]

    def _closing(self, flow: Flow, moment: int) -> int:
        behind = [*flow.branches, *(self.cuts[name].flow for name in flow.exits if name in self.cuts)]
        ends = [moment, *(self._closing(branch, moment) for branch in behind)]
        for operator in [self.operators[name] for name in flow.exits if name in self.operators]:
            end = operator.entry.spec.closing(moment)
            # The time of a window's result is its last moment.
            ends += [end, self._closing(operator.flow, max(moment, end - 1))]
        return max(ends)
