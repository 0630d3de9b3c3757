"""Layouts of windows whose bounds follow from the time alone: regular, by a function of the user's, or one for all time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl

from headrace.core.columns.moments import FIRST, LAST
from headrace.core.errors import JobError
from headrace.operators.contract import START, STOP
from headrace.operators.event_time.epoch_time import BEGINNING, END
from headrace.operators.user_errors import raised

# The start of a pane: a stretch of time whose records are in the same windows.
CELL = "_cell"


class WindowLayout(Protocol):
    """The windows of event times, in microseconds."""

    def bounds(self, times: pl.Series) -> tuple[pl.Series, pl.Series]:
        """Start and end of the last window that contains each time; null where there is none."""
        ...

    def partly_closed(self, times: pl.Series, limit: int) -> int:
        """The number of times that have a window that ends after `limit` and also one that ends by then."""
        ...

    def cells(self, times: pl.Series) -> pl.Series:
        """The cell of each time."""
        ...

    def spread(self, partial: pl.DataFrame) -> pl.DataFrame:
        """Partial results by cell as those of every window (`_start`, `_end`) that contains the cell."""
        ...

    def closing(self, moment: int) -> int:
        """The end of the last window that contains a moment, or the moment itself where there is none."""
        ...


class Apart:
    """Windows that do not overlap: a cell is a window."""

    def bounds(self, times: pl.Series) -> tuple[pl.Series, pl.Series]:
        raise TypeError(f"{type(self).__name__} has no bounds")

    def partly_closed(self, times: pl.Series, limit: int) -> int:
        return 0

    def cells(self, times: pl.Series) -> pl.Series:
        return self.bounds(times)[0]

    def spread(self, partial: pl.DataFrame) -> pl.DataFrame:
        start, stop = self.bounds(partial.get_column(CELL))
        return partial.drop(CELL).with_columns_seq(start.alias(START), stop.alias(STOP))

    def closing(self, moment: int) -> int:
        end = self.bounds(pl.Series([moment], dtype=pl.Int64))[1].item()
        return moment if end is None else int(end)


@dataclass(frozen=True)
class Regular:
    """Windows of `size` every `hop`, shifted by `offset`."""

    size: int
    hop: int
    offset: int = 0

    def bounds(self, times: pl.Series) -> tuple[pl.Series, pl.Series]:
        start = _floored(times, self.hop, self.offset)
        return start, start + self.size

    def partly_closed(self, times: pl.Series, limit: int) -> int:
        if self.size <= self.hop:
            return 0
        first_end = _floored(times - self.size, self.hop, self.offset) + self.hop + self.size
        return int((first_end <= limit).sum())

    def cells(self, times: pl.Series) -> pl.Series:
        return _floored(times, math.gcd(self.size, self.hop), self.offset)

    def spread(self, partial: pl.DataFrame) -> pl.DataFrame:
        last = (pl.col(CELL) - self.offset).floordiv(self.hop) * self.hop + self.offset
        first = ((pl.col(CELL) - self.offset - self.size).floordiv(self.hop) + 1) * self.hop + self.offset
        windows = partial.with_columns_seq(pl.int_ranges(first, last + 1, self.hop).alias(START)).explode(START)
        return windows.drop(CELL).with_columns_seq((pl.col(START) + self.size).alias(STOP))

    def closing(self, moment: int) -> int:
        return (moment - self.offset) // self.hop * self.hop + self.offset + self.size


@dataclass(frozen=True)
class Whole(Apart):
    """One window for all time. It ends with the input."""

    def bounds(self, times: pl.Series) -> tuple[pl.Series, pl.Series]:
        start, stop = (pl.Series([bound], dtype=pl.Int64).new_from_index(0, len(times)) for bound in (BEGINNING, END))
        return start, stop

    def closing(self, moment: int) -> int:
        return moment


@dataclass(frozen=True)
class ByFunction(Apart):
    """Windows by a function from times to their starts and ends, as arrays of numpy's `datetime64[us]`."""

    function: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] = field(compare=False)

    def bounds(self, times: pl.Series) -> tuple[pl.Series, pl.Series]:
        distinct = times.unique()
        try:
            start, stop = (_bounds(bound, len(distinct)) for bound in self.function(distinct.to_numpy().astype("datetime64[us]")))
        except Exception as error:
            raise JobError(
                f"the function of custom windows failed: {raised(error, self.function)}",
                why="no single record can be identified as the bad one, so the job stops",
                hint="return the starts and the ends of as many windows as there are times, NaT where a time is in none",
            ) from error
        known = pl.DataFrame({"time": distinct, START: start, STOP: stop})
        # A window that does not contain its time is none; numpy's NaT is the smallest number.
        holds = (pl.col(START) <= pl.col("time")) & (pl.col("time") < pl.col(STOP)) & (pl.col(START) >= FIRST) & (pl.col(STOP) <= LAST)
        known = known.with_columns_seq(pl.when(holds).then(pl.col(name)).alias(name) for name in (START, STOP))
        found = pl.DataFrame({"time": times}).join(known, on="time", how="left", maintain_order="left")
        return found.get_column(START), found.get_column(STOP)


def _bounds(given: object, count: int) -> pl.Series:
    bounds = np.asarray(given).astype("datetime64[us]")
    if bounds.shape != (count,):
        raise ValueError(f"it gave {bounds.size} bounds for {count} times")
    return pl.Series(bounds.astype(np.int64))


def _floored(times: pl.Series, step: int, offset: int) -> pl.Series:
    return (times - offset) // step * step + offset
