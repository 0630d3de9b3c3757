"""The join of a stream with a table as of a moment of each record: versions of the table, and records that wait for the watermark.

A record is answered when no earlier version can come, whatever the order in which records and versions came. An early answer is kept with
its record, and retracted if the final one is another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.changes import TIME, added, retracted
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.contract import START, STOP, Arrived, Entered, Made, Outcome, Port, operator_of, without_result
from headrace.operators.event_time.arrival_order import by_key_as_they_came, placed
from headrace.operators.event_time.epoch_time import BEGINNING, EpochTime
from headrace.operators.event_time.late import in_time
from headrace.operators.expressions import REASON
from headrace.operators.joins.pairing import Pairing
from headrace.operators.state.chunks import Chunks
from headrace.operators.state.persistent import SeveralStates
from headrace.operators.state.store import Store
from headrace.operators.state.versions import Versions
from headrace.plan.joins.as_of import AsOfJoin
from headrace.plan.joins.join import LEFT, RIGHT

# The moment that a record is looked up at, in microseconds.
_AT = "_at"
# Whether an answer has a version.
_FOUND = "_found"


@dataclass(frozen=True)
class Questions:
    """Records that ask for the version at the moment in a column; late if that is more than `reach` behind the watermark."""

    by: tuple[str, ...]
    columns: tuple[str, ...]
    moment: str
    reach: int
    late_because: str

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        moment = records.get_column(self.moment).dt.epoch("us")
        is_late = (moment < time.before - self.reach).fill_null(False)
        # A record without a moment has no version: it need not wait.
        rows = records.select_seq(*self.columns, TIME, moment.fill_null(BEGINNING).alias(_AT)).filter(~is_late)
        return Entered(rows, rows.height, self._late(records.filter(is_late)) if is_late.any() else None)

    def _late(self, records: pl.DataFrame) -> pl.DataFrame:
        unknown = pl.lit(None, pl.Int64)
        return records.with_columns_seq(unknown.alias(START), unknown.alias(STOP), pl.lit(self.late_because).alias(REASON))


@dataclass(frozen=True)
class NewVersions:
    """Records of the table's stream. One behind the watermark is late: it would be the answer to what was answered already."""

    by: tuple[str, ...]
    columns: tuple[str, ...]
    lateness: int

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        records, late = in_time(records, time.before - self.lateness)
        return Entered(placed(records, (*self.columns, TIME)), records.height, late)


@dataclass(frozen=True)
class AsOfSpec:
    """Versions are valid for `ttl` at most; they come up to `lateness` behind the watermark; all in microseconds."""

    pairing: Pairing
    keeps_left: bool
    reach: int
    ttl: int | None
    lateness: int
    early: bool = False
    """Whether records are answered when they come, too."""

    def closing(self, moment: int) -> int:
        return moment + self.lateness + 1

    def fresh(self) -> AsOfJoined:
        return AsOfJoined(self)


class AsOfJoined(SeveralStates):
    """The records of one shard that wait, with their early answers if they have some, and the versions of its keys."""

    def __init__(self, spec: AsOfSpec) -> None:
        self._spec, self._pairing = spec, spec.pairing
        self._waiting = Chunks("waiting", _AT, lambda frame: frame)
        self._versions = Versions("version", spec.pairing.on, spec.ttl)
        super().__init__(self._waiting, self._versions)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        self._take_in(arrived, store)
        before, after = time.before - self._spec.lateness, time.after - self._spec.lateness
        came = pl.concat(arrived.at(LEFT)) if arrived.at(LEFT) else None
        results, unmatched = self._proved(came, self._waiting.between(before, after), after)
        if came is not None:
            waiting = came.filter(pl.col(_AT) >= after)
            if self._spec.early:
                waiting = self._answered(waiting)
                results.append(added(self._shown(waiting)))
            self._waiting.add(waiting)
        self._waiting.save(after, store)
        self._versions.evict(after - self._spec.reach, store)
        return Outcome([part for part in results if part.height], counts=without_result(unmatched))

    def _take_in(self, arrived: Arrived, store: Store) -> None:
        """Write new versions: of those of one key and time the one that came last."""
        frames = arrived.at(RIGHT)
        if not frames:
            return
        names, on = dict(self._pairing.renamed), [*self._pairing.on]
        came = pl.concat(frames).rename(names, strict=False)
        timed = came.filter(pl.col(TIME).is_not_null())
        ordered = by_key_as_they_came(timed, [*on, TIME])
        rows = ordered.unique(subset=[*on, TIME], keep="last", maintain_order=True).drop(PARTITION, OFFSET)
        self._versions.put(rows.select_seq(*on, *(name for name, _ in self._pairing.right), TIME), store)

    def _proved(self, came: pl.DataFrame | None, waited: pl.DataFrame | None, after: int) -> tuple[list[pl.DataFrame], int]:
        """The final answers of records that came and of those that waited, and how many have none. Early ones that differ are retracted."""
        results, unmatched = list[pl.DataFrame](), 0
        if came is not None:
            answers = self._answered(came.filter(pl.col(_AT) < after))
            unmatched += self._unmatched(answers)
            results.append(added(self._shown(answers)))
        if waited is not None:
            answers = self._answered(waited)
            unmatched += self._unmatched(answers)
            if self._spec.early:
                moved = self._moved(waited, answers)
                results.append(retracted(self._shown(waited.filter(moved))))
                answers = answers.filter(moved)
            results.append(added(self._shown(answers)))
        return results, unmatched

    def _answered(self, asking: pl.DataFrame) -> pl.DataFrame:
        """Records in their order with the columns of the version that is valid at their moment, and whether there is one."""
        right = [name for name, _ in self._pairing.right]
        found = self._versions.as_of(asking, asking.get_column(_AT).to_numpy()) if asking.height else None
        # The time of a result is that of its record, or the moment it waited for.
        left = asking.select_seq(*(name for name, _ in self._pairing.left), pl.max_horizontal(TIME, _AT).alias(TIME), _AT)
        if found is None:
            return left.with_columns_seq(
                *(pl.lit(None, kind).alias(name) for name, kind in self._pairing.right), pl.lit(False).alias(_FOUND)
            )
        places = np.full(asking.height, -1, dtype=np.int64)
        places[found.places] = np.arange(len(found.places))
        at = pl.Series(places, dtype=pl.Int64)
        versions = found.rows.select_seq(pl.col(right).gather(at.set(at < 0, None)))
        return pl.concat([left, versions, (at >= 0).alias(_FOUND).to_frame()], how="horizontal")

    def _moved(self, early: pl.DataFrame, final: pl.DataFrame) -> pl.Series:
        """Which final answers differ from the early ones."""
        moved = early.get_column(_FOUND) != final.get_column(_FOUND)
        for name, _ in self._pairing.right:
            moved |= early.get_column(name).ne_missing(final.get_column(name))
        return moved

    def _shown(self, answers: pl.DataFrame) -> pl.DataFrame:
        """Answers as results."""
        shown = answers if self._spec.keeps_left else answers.filter(_FOUND)
        return shown.select_seq(*self._pairing.columns, TIME)

    def _unmatched(self, answers: pl.DataFrame) -> int:
        """How many records are in no result."""
        return 0 if self._spec.keeps_left else answers.height - int(answers.get_column(_FOUND).sum())


@operator_of.register
def _(node: AsOfJoin) -> Made:
    sides, reach = node.sides, microseconds(node.reach)
    lateness = microseconds(sides.right.lateness)
    ttl = None if node.table.expires_after is None else microseconds(node.table.expires_after)
    ports = {
        LEFT: Port(Questions(sides.left_on, tuple(sides.left.columns.names), node.moment, reach, node.late_because)),
        RIGHT: Port(NewVersions(sides.right_on, tuple(sides.right.columns.names), lateness)),
    }
    return Made(AsOfSpec(Pairing.of(sides), sides.keeps_left, reach, ttl, lateness, bool(node.early)), ports)
