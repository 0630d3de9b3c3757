"""One aggregate call, as the operators see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.plan.aggregates.nodes import Options
from headrace.plan.aggregates.user_aggregate import Aggregate as Own

Accumulators = Mapping[str, pl.Expr]
_UNTYPED = pl.Null()


@dataclass(frozen=True)
class EvaluatedCall:
    """One aggregate call with its arguments already evaluated into columns; `filter` names a boolean column.

    `kind` is the type of its result, `taken` that of the added or compared values, `text` how the user wrote it. `signed`: the input is a
    changelog, and a retraction (`_op` -1) removes its record again. `options` are its constant arguments; `own` is set where the function
    is the user's.
    """

    function: str
    name: str
    inputs: tuple[str, ...] = ()
    filter: str | None = None
    kind: pl.DataType = _UNTYPED
    signed: bool = False
    taken: pl.DataType = _UNTYPED
    text: str = ""
    options: Options = ()
    own: Own | None = None

    @property
    def argument(self) -> pl.DataType:
        return self.kind if self.taken == _UNTYPED else self.taken

    def part(self, what: str) -> str:
        return f"{self.name}.{what}"

    def column(self, place: int) -> pl.Expr:
        """An argument, only of the records that pass the filter."""
        return self.filtered(pl.col(self.inputs[place]))

    def filtered(self, values: pl.Expr) -> pl.Expr:
        return values if self.filter is None else values.filter(pl.col(self.filter))

    @property
    def passing(self) -> list[pl.Expr]:
        """The condition of a filtered aggregate, if it is one."""
        return [] if self.filter is None else [pl.col(self.filter)]

    def chosen(self, records: pl.DataFrame) -> np.ndarray | None:
        """The records that count: those that pass the filter and have an argument; None if all of them do."""
        given = [records.get_column(name).is_not_null() for name in self.inputs if records.get_column(name).null_count()]
        if self.filter is not None:
            given.append(records.get_column(self.filter).fill_null(False))
        return np.logical_and.reduce([one.to_numpy() for one in given]) if given else None
