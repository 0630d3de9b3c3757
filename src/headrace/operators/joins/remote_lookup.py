"""The join of a stream with another system: answers by key, kept for some time and with the epoch that asked for them.

The answers of an epoch, and the failures, are in its state, which is stored before any result of it leaves the task. So an attempt that
repeats the epoch reads them from the state of an earlier one, and makes of every record what that one made. If an attempt dies before its
state is stored, nothing of it has left, and the next one asks again. A failure is not a cached answer: the next epoch asks again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from headrace.core.durations import microseconds
from headrace.operators.changes import TIME, added
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of, single, without_result
from headrace.operators.event_time.arrival_order import placed
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.expressions import REASON
from headrace.operators.joins.asking import FOUND, Asker
from headrace.operators.key_join import key_join
from headrace.operators.state.expiring import ExpiringState
from headrace.operators.state.found_rows import distinct_keys
from headrace.operators.state.keyed import KeyedState
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store
from headrace.plan.joins.join import LEFT
from headrace.plan.joins.remote_lookup import RemoteFunction, RemoteLookup

# The wall clock and the number of the epoch that asked.
ASKED, EPOCH = "_asked", "_epoch"
_ANSWER = "answer"


@dataclass(frozen=True)
class RemoteLookupSpec:
    """Whom to ask for the row of each record's key, and how long an answer is kept, in microseconds; `keeps_left`: also without one."""

    remote: RemoteFunction
    on: tuple[tuple[str, str], ...]
    columns: pa.Schema
    returns: pa.Schema
    ttl: int
    keeps_left: bool

    @property
    def by(self) -> tuple[str, ...]:
        return tuple(mine for mine, _ in self.on)

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Records as they are, whatever their time."""
        return Entered(placed(records, (*self.columns.names, TIME)), records.height)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> RemoteAnswers:
        return RemoteAnswers(self)

    def asker(self) -> Asker:
        keys = pa.schema([pa.field(there, self.columns.field(mine).type) for mine, there in self.on])
        return Asker(self.remote, self.by, keys, self.returns)


class RemoteAnswers(OneState[ExpiringState]):
    """The answers of one shard, by key."""

    def __init__(self, spec: RemoteLookupSpec) -> None:
        super().__init__(ExpiringState(_ANSWER, spec.by, ASKED, spec.ttl))
        self._spec, self._by = spec, list(spec.by)
        self._asker = spec.asker()
        self._earlier: pl.DataFrame | None = None

    def recall(self, manifest: str, store: Store) -> None:
        """Read the answers of an earlier attempt of the epoch that is run next, from its state."""
        state = KeyedState(_ANSWER, self._by)
        state.restore(manifest, store)
        self._earlier = state.all()

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        outcome = Outcome()
        if any(frame.height for frame in arrived.rows):
            outcome = self._joined(pl.concat(arrived.rows, rechunk=True), time, store)
        self._earlier = None
        # What this epoch asked for stays for another attempt of it, whatever the ttl.
        self._state.forget(time.clock - 1, store)
        return outcome

    def _joined(self, records: pl.DataFrame, time: EpochTime, store: Store) -> Outcome:
        """Records with their answers. A null in a key matches nothing, and is not asked for."""
        keyed = records.select_seq(pl.all_horizontal(pl.col(name).is_not_null() for name in self._by)).to_series().to_numpy()
        keys, of_record = distinct_keys(records.select_seq(self._by).filter(keyed))
        answers = self._answers(keys, time, store).select_seq(*self._spec.returns.names, FOUND, REASON)
        # The last one is that of a null key: nothing was found, and nothing failed.
        answers = pl.concat([answers, answers.clear(1).with_columns_seq(pl.lit(False).alias(FOUND))])
        at = np.full(records.height, keys.height, dtype=np.int64)
        at[keyed] = of_record
        both = pl.concat([records, answers[at]], how="horizontal")
        failed, found = pl.col(REASON).is_not_null(), pl.col(FOUND) | self._spec.keeps_left
        bad = both.filter(failed).select_seq(*self._spec.columns.names, PARTITION, OFFSET, REASON)
        results = both.filter(~failed & found).select_seq(*self._spec.columns.names, *self._spec.returns.names, TIME)
        unmatched = records.height - bad.height - results.height
        return Outcome([added(results)] if results.height else [], counts=without_result(unmatched), bad=bad if bad.height else None)

    def _answers(self, keys: pl.DataFrame, time: EpochTime, store: Store) -> pl.DataFrame:
        """The answer for each key, in their order: that of an earlier attempt of the epoch, a cached one, or a new one."""
        again, cached = self._of_this_epoch(keys, time), self._cached(keys, time)
        known = pl.concat([again.select_seq(cached.columns), self._without(cached, again)])
        asked = self._stamped(self._asker.ask(self._without(keys, known)), time)
        news = pl.concat([again.select_seq(asked.columns), asked])
        if news.height:
            self._state.put(news, store)
        every = pl.concat([known.select_seq(asked.columns), asked])
        return key_join(keys, every, self._by, "left")

    def _cached(self, keys: pl.DataFrame, time: EpochTime) -> pl.DataFrame:
        """The answers of earlier epochs that have not expired."""
        found = self._state.find(keys)
        if found is None:
            return self._stamped(self._asker.ask(keys.clear()), time)
        return found.filter(pl.col(REASON).is_null() & (pl.col(ASKED) + self._spec.ttl > time.clock))

    def _of_this_epoch(self, keys: pl.DataFrame, time: EpochTime) -> pl.DataFrame:
        """The answers and failures that an earlier attempt of the epoch asked for."""
        if self._earlier is None:
            return self._stamped(self._asker.ask(keys.clear()), time)
        return self._earlier.filter(pl.col(EPOCH) == time.epoch).join(keys, on=self._by, how="semi")

    def _without(self, rows: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
        return rows.join(others, on=self._by, how="anti", maintain_order="left")

    def _stamped(self, answers: pl.DataFrame, time: EpochTime) -> pl.DataFrame:
        return answers.with_columns_seq(pl.lit(time.clock, pl.Int64).alias(ASKED), pl.lit(time.epoch, pl.Int64).alias(EPOCH))


@operator_of.register
def _(node: RemoteLookup) -> Made:
    columns, ttl = node.input.columns, microseconds(node.ttl)
    return single(RemoteLookupSpec(node.remote, node.on, columns, node.returns, ttl, node.how == LEFT))
