"""The stateless part of a plan: steps that judge each record by itself, and the exits to operators and sinks after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import polars as pl

from headrace.engine.packet import Exit
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.scoring import Scored


@dataclass(frozen=True)
class StepOutcome:
    """The result of a step for a batch: records that continue, the number of filtered ones, and bad ones with their `_reason`."""

    frame: pl.DataFrame
    filtered: int = 0
    bad: pl.DataFrame | None = None
    scored: Scored | None = None


class StatelessStep(Protocol):
    """A step that needs no other record than the one it judges: frozen, and sent to the tasks."""

    @property
    def name(self) -> str: ...

    def run(self, frame: pl.DataFrame, time: EpochTime) -> StepOutcome:
        """Process a batch of records."""
        ...


@dataclass(frozen=True)
class Flow:
    """Steps in their order, then the exits and further flows, which all get the remaining records."""

    steps: tuple[StatelessStep, ...] = ()
    exits: tuple[Exit, ...] = ()
    branches: tuple[Flow, ...] = ()
