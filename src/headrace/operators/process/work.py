"""The work of the user's functions in an epoch: their input and their results."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from headrace.plan.process import Logic

# The time of a key's last event or timer; the last moment that counts for its ttl; its earliest timer; all of them.
TOUCHED, UNTIL, DUE, TIMERS = "_touched", "_until", "_due", "_timers"
TIMER_KIND = pl.List(pl.Struct({"name": pl.String(), "at": pl.Int64()}))
KEPT: dict[str, pl.DataType] = {TOUCHED: pl.Int64(), UNTIL: pl.Int64(), DUE: pl.Int64(), TIMERS: TIMER_KIND}


@dataclass(frozen=True)
class Declared:
    """The declaration: `columns` are the input, `state` is kept for each key until `ttl` microseconds after its last event, `returns` are
    the output."""

    step: str
    by: tuple[str, ...]
    columns: pa.Schema
    state: pa.Schema
    returns: pa.Schema
    logic: Logic
    in_order: bool = True
    ttl: int | None = None


@dataclass(frozen=True)
class Work:
    """Keys with the state of each, row by row, null for a new one; `events` by key in their order, `counts` of them for each key.

    Timers up to `moment` are due; `ended`: there are no events after these.
    """

    events: pl.DataFrame | None
    keys: pl.DataFrame
    states: pl.DataFrame
    counts: list[int]
    moment: int
    ended: bool


@dataclass(frozen=True)
class Done:
    """Results with their time, rows to store, rows to remove, and failed events and timers, with the reason."""

    results: pl.DataFrame
    states: pl.DataFrame
    gone: pl.DataFrame
    bad: pl.DataFrame | None = None
    failed: pl.DataFrame | None = None
