"""The rows of one run of keyed state: which are old versions, which are tombstones, and how those that are due or have a key are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from headrace.operators.frames import rows_where
from headrace.operators.state.due_times import DueTimes
from headrace.operators.state.row_lookup import RowLookup


@dataclass
class RunRows:
    """The rows of a run in memory."""

    frame: pl.DataFrame
    alive: np.ndarray
    """True for rows that are not old versions."""
    marks: np.ndarray | None
    """True for tombstones; None if there are none."""
    present: int
    """How many rows are neither."""
    due: dict[str, DueTimes] = field(default_factory=dict)
    """The rows by the moments at which they are due, of each kind that was asked for."""
    lookups: dict[tuple[str, ...], RowLookup] = field(default_factory=dict)
    """The rows by other columns than the key, which were asked for."""

    @classmethod
    def of(cls, frame: pl.DataFrame, gone: pl.Series) -> RunRows:
        """The rows of a new run, of which some are `gone`: tombstones."""
        marks = gone.to_numpy() if gone.any() else None
        return cls(frame, np.ones(len(frame), dtype=bool), marks, len(frame) - int(gone.sum()))

    def outdate(self, rows: np.ndarray) -> None:
        """Mark some rows as old versions."""
        self.alive[rows] = False
        self.present -= len(rows) - (0 if self.marks is None else int(self.marks[rows].sum()))

    def reached(self, kind: str, due: pl.Expr, moment: int) -> np.ndarray:
        """The rows that are present and due at a moment."""
        if kind not in self.due:
            moments = self.frame.select_seq(due.cast(pl.Int64)).to_series()
            self.due[kind] = DueTimes(moments if self.marks is None else moments.set(pl.Series(self.marks), None))
        return self.due[kind].reached(moment, self.alive)

    def are_present(self, rows: np.ndarray) -> np.ndarray:
        """True for rows that are neither old versions nor tombstones."""
        alive: np.ndarray = self.alive[rows]
        return alive if self.marks is None else alive & ~self.marks[rows]

    def lookup(self, columns: Sequence[str]) -> RowLookup:
        """The rows by some columns."""
        asked = tuple(columns)
        if asked not in self.lookups:
            self.lookups[asked] = RowLookup(self.frame, columns)
        return self.lookups[asked]

    def holding(self) -> pl.DataFrame:
        """The rows that are not old versions."""
        return rows_where(self.frame, self.alive)
