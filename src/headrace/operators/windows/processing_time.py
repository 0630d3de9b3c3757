"""Windows by the wall clock: any operator of windows, with the recorded wall clock of epochs as its time.

The clock of an epoch is read when it is planned and travels in the offset, so that a repeated epoch gives the same results; all its records
have one time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.changes import TIME
from headrace.operators.contract import Arrived, Entered, Outcome, Spec, Stateful
from headrace.operators.event_time.epoch_time import END, EpochTime
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store
from headrace.operators.windows.emission import Emission
from headrace.operators.windows.registry import windowed
from headrace.plan.windows.processing_time import ProcessingTime


@dataclass(frozen=True)
class ClockedSpec:
    """Windows by the clock of epochs; one ends every `hop`."""

    spec: Spec
    size: int
    hop: int

    @property
    def by(self) -> tuple[str, ...]:
        return self.spec.by

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        return self.spec.enter(records.with_columns_seq(pl.lit(time.clock, pl.Int64).alias(TIME)), by_clock(time))

    def closing(self, moment: int) -> int:
        """There is no event time to wait for."""
        return moment

    def last_end(self, clock: int) -> int:
        return self.spec.closing(clock)

    def next_end(self, clock: int) -> int:
        return self.spec.closing(clock - self.size) + self.hop

    def fresh(self) -> Clocked:
        return Clocked(self.spec.fresh())


class Clocked(OneState[Stateful]):
    """The state of one shard, driven by the clock of epochs."""

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        return self._state.run(arrived, by_clock(time), store)


def by_clock(time: EpochTime) -> EpochTime:
    """An epoch as a window of the wall clock sees it. When the input ends, so does the clock: every window fires."""
    before, after = (END if mark >= END else clock for mark, clock in ((time.before, time.clock_before), (time.after, time.clock)))
    return EpochTime(time.epoch, before, after)


@windowed.register
def _(window: ProcessingTime, emission: Emission) -> ClockedSpec:
    inner = windowed(window.window, replace(emission, until=0))
    return ClockedSpec(inner, microseconds(window.window.size), microseconds(window.window.hop))
