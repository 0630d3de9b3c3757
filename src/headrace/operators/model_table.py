"""Scores of the models of a table: every shard has all of its rows, and the greatest version is in force.

The changes of an epoch are applied before its records are scored, so that a repeated epoch gives the same scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from headrace.operators.changes import ADD, OP, TIME, added, as_upserts
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.contract import Arrived, Entered, Exported, Made, Outcome, Port, operator_of
from headrace.operators.event_time.arrival_order import placed
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.expressions import REASON
from headrace.operators.joins.entrances import TableChanges
from headrace.operators.onnx_models import loaded
from headrace.operators.scoring import Scoring
from headrace.operators.state.keyed import GONE, KeyedState
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store
from headrace.operators.user_errors import raised
from headrace.plan.joins.join import LEFT, RIGHT
from headrace.plan.scoring import CONTENTS, VERSION, OnnxModel, ScoreByTable


@dataclass(frozen=True)
class PlacedRecords:
    """Records of a stream with their places, whatever their time."""

    by: tuple[str, ...]
    columns: tuple[str, ...]

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        return Entered(placed(records, (*self.columns, TIME)), records.height)


@dataclass(frozen=True)
class ModelTableSpec:
    """Records with `columns` are scored of `taken`; `identity` tells the rows of the table apart."""

    columns: tuple[str, ...]
    taken: tuple[str, ...]
    output: pa.Field
    identity: tuple[str, ...]
    version: str = ""

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> ModelTable:
        return ModelTable(self)


class _ModelInForce(NamedTuple):
    """The model that scores, with its version as the table has it, or the reason why there is none."""

    reason: str | None
    scoring: Scoring | None = None
    version: pl.Series = pl.Series([], dtype=pl.Null)


class ModelTable(OneState[KeyedState]):
    """All models, and the one in force."""

    def __init__(self, spec: ModelTableSpec) -> None:
        super().__init__(KeyedState("model", spec.identity))
        self._spec = spec
        self._in_force: _ModelInForce | None = None

    def restore(self, manifest: str | None, store: Store) -> None:
        super().restore(manifest, store)
        self._in_force = None

    def export(self) -> Exported:
        return Exported(everywhere=super().export().frames)

    def absorb(self, moved: Exported, store: Store) -> None:
        super().absorb(Exported(moved.everywhere), store)
        self._in_force = None

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        if changes := [frame for frame in arrived.at(RIGHT) if frame.height]:
            latest = as_upserts(pl.concat(changes), self._spec.identity)
            self._state.put(latest.with_columns_seq((pl.col(OP) != ADD).alias(GONE)).drop(OP), store)
            self._in_force = None
        records = [frame for frame in arrived.at(LEFT) if frame.height]
        return self._scored(pl.concat(records)) if records else Outcome()

    def _scored(self, records: pl.DataFrame) -> Outcome:
        if self._in_force is None:
            self._in_force = self._newest()
        model = self._in_force
        if model.scoring is None:
            return Outcome(bad=self._bad(records.with_columns_seq(pl.lit(model.reason).alias(REASON))))
        made, bad, scored = model.scoring.timed(records)
        shown = [*self._spec.columns, self._spec.output.name]
        if self._spec.version:
            made = made.with_columns_seq(model.version.new_from_index(0, made.height).alias(self._spec.version))
            shown.append(self._spec.version)
        results = [added(made.select_seq(*shown, TIME))] if made.height else []
        return Outcome(results, bad=None if bad is None else self._bad(bad), scored=scored)

    def _bad(self, records: pl.DataFrame) -> pl.DataFrame:
        return records.select_seq(*self._spec.columns, PARTITION, OFFSET, REASON)

    def _newest(self) -> _ModelInForce:
        """The model with the greatest version, or the reason why there is none."""
        every = self._state.all()
        usable = None if every is None else every.filter(pl.col(VERSION).is_not_null() & pl.col(CONTENTS).is_not_null())
        if usable is None or usable.is_empty():
            return _ModelInForce("there is no model yet")
        newest = usable.sort(VERSION, *self._spec.identity).tail(1)
        version, contents = newest.get_column(VERSION), newest.item(0, CONTENTS)
        try:
            loaded(contents)
        except Exception as error:  # noqa: BLE001 - whatever the contents are, they came as data
            return _ModelInForce(f"model version {version[0]} cannot be loaded: {raised(error, None)}")
        return _ModelInForce(None, Scoring(OnnxModel(str(version[0]), contents), self._spec.taken, self._spec.output), version)


@operator_of.register
def _(node: ScoreByTable) -> Made:
    identity = node.models.keys
    ports = {
        LEFT: Port(PlacedRecords(node.by, tuple(node.input.columns.names))),
        RIGHT: Port(TableChanges(identity, tuple(node.models.columns.names), identity), broadcast=True),
    }
    return Made(ModelTableSpec(tuple(node.input.columns.names), node.taken, node.output, identity, node.version), ports)
