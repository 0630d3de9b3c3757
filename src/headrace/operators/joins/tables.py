"""The join of two tables: the rows of both sides by what must be equal, and the pairs that a change adds and retracts.

A change of one row looks up the rows of the other side that it meets, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from headrace.operators.changes import ADD, OP, added, as_upserts, retracted
from headrace.operators.contract import Arrived, Made, Outcome, Port, operator_of, without_result
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.joins.entrances import LikeOthers, TableChanges
from headrace.operators.joins.pairing import Pairing
from headrace.operators.joins.unchanged import without_unchanged
from headrace.operators.key_join import key_join
from headrace.operators.state.multimap import Multimap
from headrace.operators.state.persistent import SeveralStates
from headrace.operators.state.store import Store
from headrace.plan.joins.join import LEFT, RIGHT
from headrace.plan.joins.tables import TableJoin
from headrace.plan.nodes import Node

_PLACE, _OTHER = "_place", "_other"
# Whether a key has no row of the other side, before and after an epoch, and by how many rows it has more.
_BEFORE, _AFTER, _MOVED = "_before", "_next", "_count"


@dataclass(frozen=True)
class TableJoinSpec:
    """Pairs of rows of two tables; the identities tell the rows of each apart, under the names of a result."""

    pairing: Pairing
    left_identity: tuple[str, ...]
    right_identity: tuple[str, ...]
    keeps_left: bool
    keeps_right: bool

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> TablesJoined:
        return TablesJoined(self)


@dataclass(frozen=True)
class _Change:
    """The changes of an epoch on one side: rows that are retracted, rows that are added, and the keys of both, each once."""

    gone: pl.DataFrame
    come: pl.DataFrame
    keys: pl.DataFrame
    touched: pl.DataFrame
    """The identities of all rows that were said to change."""
    retimed: bool = False
    """Whether some rows that are added differ from what they were in nothing but their time."""


class TablesJoined(SeveralStates):
    """The rows of both tables of one shard."""

    def __init__(self, spec: TableJoinSpec) -> None:
        self._spec, self._pairing = spec, spec.pairing
        self._left = Multimap("left", spec.pairing.on, spec.left_identity)
        self._right = Multimap("right", spec.pairing.on, spec.right_identity)
        self._identity = [*dict.fromkeys((*self._left.identity, *self._right.identity))]
        super().__init__(self._left, self._right)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        if not arrived.at(LEFT) and not arrived.at(RIGHT):
            return Outcome()
        left, lost_left = self._change(self._left, self._pairing.left_rows(arrived.at(LEFT)), self._spec.keeps_left)
        right, lost_right = self._change(self._right, self._pairing.right_rows(arrived.at(RIGHT)), self._spec.keeps_right)
        # Rows that stay, of the keys that the other side touches.
        left_kept, right_kept = self._kept(self._left, right.keys, left), self._kept(self._right, left.keys, right)
        gone = self._pairs((left.gone, right_kept), (left.gone, right.gone), (left_kept, right.gone))
        come = self._pairs((left.come, right_kept), (left.come, right.come), (left_kept, right.come))
        if self._spec.keeps_left:
            ceased, began = self._alone(left, left_kept, right, self._right)
            gone += [self._pairing.left_alone(part) for part in ceased]
            come += [self._pairing.left_alone(part) for part in began]
        if self._spec.keeps_right:
            ceased, began = self._alone(right, right_kept, left, self._left)
            gone += [self._pairing.right_alone(part) for part in ceased]
            come += [self._pairing.right_alone(part) for part in began]
        self._write(self._left, left, store)
        self._write(self._right, right, store)
        if gone and come and (left.retimed or right.retimed):
            # The time of a result is the later one of its rows. Where that stays, nobody can see that the other has moved.
            was, now, _ = without_unchanged(pl.concat(gone), pl.concat(come), self._identity)
            gone, come = [was], [now]
        results = [*map(retracted, gone), *map(added, come)]
        return Outcome(results, counts=without_result(lost_left + lost_right))

    def table(self) -> pl.DataFrame | None:
        """All results that hold."""
        left, right = self._left.all(), self._right.all()
        parts = [] if left is None or right is None else self._pairs((left, right))
        if left is not None and self._spec.keeps_left:
            alone = left if right is None else left.join(right, on=self._pairing.on, how="anti")
            parts.append(self._pairing.left_alone(alone))
        if right is not None and self._spec.keeps_right:
            alone = right if left is None else right.join(left, on=self._pairing.on, how="anti")
            parts.append(self._pairing.right_alone(alone))
        return added(pl.concat(parts)) if parts else None

    def _change(self, state: Multimap, came: pl.DataFrame, keeps: bool) -> tuple[_Change, int]:
        """The effect of changes on one side, and how many have a key that matches nothing and are in no result."""
        changes = came if keeps or came.is_empty() else came.filter(self._pairing.keyed())
        lost = came.height - changes.height
        if changes.is_empty():
            empty = changes.drop(OP, strict=False)
            return _Change(empty, empty, empty.select_seq(self._pairing.on), empty.select_seq(state.identity)), lost
        changes = as_upserts(changes, state.identity)
        come = changes.filter(pl.col(OP) == ADD).drop(OP)
        found = state.same(changes)
        gone = come.clear() if found is None else found.select_seq(come.columns)
        gone, come, retimed = without_unchanged(gone, come, state.identity)
        keys = pl.concat([gone.select_seq(self._pairing.on), come.select_seq(self._pairing.on)]).unique()
        touched = pl.concat([gone.select_seq(state.identity), come.select_seq(state.identity)]).unique()
        return _Change(gone, come, keys, touched, retimed), lost

    def _kept(self, state: Multimap, keys: pl.DataFrame, change: _Change) -> pl.DataFrame:
        """The rows of keys that an epoch does not change."""
        found = None if keys.is_empty() else state.find(keys)
        if found is None:
            return change.come.clear()
        rows = found.rows.select_seq(change.come.columns)
        return rows if change.touched.is_empty() else rows.join(change.touched, on=state.identity, how="anti", nulls_equal=True)

    def _alone(self, own: _Change, kept: pl.DataFrame, other: _Change, others: Multimap) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
        """The rows of one side that cease to be without a match, and those that begin to be."""
        if own.gone.is_empty() and own.come.is_empty() and kept.is_empty():
            return [], []
        on = [*self._pairing.on]
        keys = pl.concat([own.keys, other.keys]).unique()
        moved = pl.concat([other.come.select_seq(*on, pl.lit(1).alias(_MOVED)), other.gone.select_seq(*on, pl.lit(-1).alias(_MOVED))])
        moved = moved.filter(self._pairing.keyed()).group_by(on).agg(pl.col(_MOVED).sum())
        counted = key_join(keys.with_columns_seq(pl.Series(_BEFORE, others.having(keys), pl.Int64)), moved, on, "left")
        behind = pl.col(_BEFORE) + pl.col(_MOVED).fill_null(0)
        counted = counted.with_columns_seq((pl.col(_BEFORE) == 0).alias(_BEFORE), (behind == 0).alias(_AFTER))

        def rows(*parts: tuple[pl.DataFrame, pl.Expr]) -> list[pl.DataFrame]:
            judged = ((part, key_join(part, counted, on, nulls_equal=True).filter(condition)) for part, condition in parts if part.height)
            return [chosen.select_seq(part.columns) for part, chosen in judged if chosen.height]

        before, after = pl.col(_BEFORE), pl.col(_AFTER)
        return rows((own.gone, before), (kept, before & ~after)), rows((own.come, after), (kept, ~before & after))

    def _write(self, state: Multimap, change: _Change, store: Store) -> None:
        if change.gone.is_empty() and change.come.is_empty():
            return
        removed = change.gone.join(change.come, on=state.identity, how="anti", nulls_equal=True)
        state.change(change.come, removed, store)

    def _pairs(self, *sides: tuple[pl.DataFrame, pl.DataFrame]) -> list[pl.DataFrame]:
        """All pairs of rows of two sides with equal keys; null equals nothing."""
        on, found = [*self._pairing.on], []
        for left, right in sides:
            if left.height and right.height:
                numbers = key_join(left.select_seq(on).with_row_index(_PLACE), right.select_seq(on).with_row_index(_OTHER), on)
                if numbers.height:
                    found.append(self._pairing.pairs(left[numbers.get_column(_PLACE)], right[numbers.get_column(_OTHER)]))
        return found


def _own(side: Node, on: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a table's key that are not compared."""
    return tuple(name for name in side.keys if name not in on)


def _like_others(node: TableJoin, on: tuple[str, ...], side: Node, others: tuple[str, ...]) -> LikeOthers | None:
    """Which rows of one side of a full join look like one of the other side, if neither has a match; `others` is what `_own` is there.

    Their keys in a result are equal if both have only nulls in what is their own, and the same in what is compared and in the key. If all
    that is compared is in the key, they would be a match, but for a null.
    """
    if not (node.sides.keeps_left and node.sides.keeps_right):
        return None
    own = _own(side, on)
    if own:
        return LikeOthers(own, on if set(node.sides.left_on) <= set(node.keys) else ())
    return LikeOthers(side.keys) if others else LikeOthers((), on)


@operator_of.register
def _(node: TableJoin) -> Made:
    sides, shown = node.sides, node.sides.shown
    left, right, left_on, right_on = sides.left, sides.right, sides.left_on, sides.right_on
    spec = TableJoinSpec(Pairing.of(sides), left.keys, tuple(shown[name] for name in right.keys), sides.keeps_left, sides.keeps_right)
    like_right = _like_others(node, left_on, left, _own(right, right_on))
    like_left = _like_others(node, right_on, right, _own(left, left_on))
    ports = {
        LEFT: Port(TableChanges(left_on, tuple(left.columns.names), left.keys, like_right)),
        RIGHT: Port(TableChanges(right_on, tuple(right.columns.names), right.keys, like_left)),
    }
    return Made(spec, ports)
