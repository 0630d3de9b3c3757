"""A run of a streaming query as a benchmark sees it: its epochs with the time of each phase, its state and its memory."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

PHASES = ("latestOffset", "walCommit", "queryPlanning", "addBatch", "commitOffsets")


@dataclass(frozen=True)
class Epoch:
    """One micro-batch: the records it took in, and Spark's own measure of it and of its phases, in seconds."""

    rows: int
    seconds: float
    phases: Mapping[str, float]


@dataclass(frozen=True)
class Run:
    """A query that has ended: the epochs that took in records, the table that it left, and its state as its engine counts it."""

    epochs: Sequence[Epoch]
    result: pl.DataFrame
    state_megabytes: float
    peak_megabytes: float

    def steady(self, skip: int) -> list[Epoch]:
        """The epochs but the first ones, in which processes start, and the last, which may be short."""
        return list(self.epochs[skip:-1] if len(self.epochs) > skip + 1 else self.epochs[skip:])

    def rate(self, skip: int) -> float:
        """Records per second."""
        return statistics.median(epoch.rows / epoch.seconds for epoch in self.steady(skip))

    def cost(self, skip: int) -> float:
        """Seconds an epoch."""
        return statistics.median(epoch.seconds for epoch in self.steady(skip))

    def shares(self, skip: int) -> dict[str, float]:
        """The seconds of each phase of an epoch."""
        epochs = self.steady(skip)
        return {phase: round(statistics.median(epoch.phases.get(phase, 0.0) for epoch in epochs), 3) for phase in PHASES}


def epoch(progress: Mapping[str, Mapping[str, float]], rows: int) -> Epoch:
    """An epoch with at least this number of records, from Spark's report on it."""
    spent = {name: milliseconds / 1000 for name, milliseconds in progress["durationMs"].items()}
    return Epoch(rows, spent["triggerExecution"], spent)
