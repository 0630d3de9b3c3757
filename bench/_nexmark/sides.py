"""A side of the benchmark: its answer to a query over a few events, and the cost of a query over many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars as pl


@dataclass(frozen=True)
class Refused:
    """Why a side does not take a query."""

    reason: str


@dataclass(frozen=True)
class Spent:
    """What a run of a query took: the CPU time of all its processes, and the time that passed."""

    cpu_seconds: float
    seconds: float


@dataclass(frozen=True)
class Inputs:
    """The same kind of events in four amounts: few to compare answers; the difference between two others tells what one event costs."""

    few: Path
    some: Path
    many: Path
    more: Path

    @property
    def all(self) -> Mapping[str, Path]:
        return {"few": self.few, "some": self.some, "many": self.many, "more": self.more}


class Side(Protocol):
    """An engine with the events at hand."""

    name: str

    def answer(self, query: str) -> pl.DataFrame | Refused:
        """What a query gives over few events."""
        ...

    def spend(self, query: str, amount: str) -> Spent:
        """Run a query over `some`, `many` or `more` events, and let go of its results."""
        ...
