"""Inputs of a story: one stream or the union of two, with a watermark of any kind."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, loss_budget, perfect
from tests.support.models.rows import SECOND

COLUMNS = "k string, g string, v int, at timestamp"


@dataclass(frozen=True)
class Input:
    """The streams of a story and their watermarks; `idle`: a stream that is silent for long does not hold event time back."""

    watermarks: dict[str, Any]
    idle: bool = False

    @classmethod
    def plain(cls, chance: random.Random, unit: int) -> Input:
        bound = chance.choice([0, 0, 5, 8])
        return cls({"s": bounded(f"{bound * unit} seconds") if bound else perfect()})

    @classmethod
    def wide(cls, chance: random.Random, unit: int) -> Input:
        idle = chance.random() < 0.5
        options = {"idle": f"{chance.choice([12, 30]) * unit} seconds"} if idle else {}

        def watermark() -> Any:
            bound, budget = chance.choice([0, 5, 8]), chance.choice([0.05, 0.2, 0.5])
            if chance.random() < 0.4:
                return loss_budget(budget, max=f"{chance.choice([8, 15]) * unit} seconds", **options)
            return bounded(f"{bound * unit} seconds", **options) if bound else perfect(**options)

        return cls({name: watermark() for name in chance.choice([("s",), ("s", "t")])}, idle)

    def declare(self, app: Declaration) -> Stream:
        first, *others = (app.stream(name, COLUMNS, key="k", time="at", watermark=mark) for name, mark in self.watermarks.items())
        return first.union(*others) if others else first

    @property
    def words(self) -> str:
        return ", ".join(f"{name}: {mark}" for name, mark in self.watermarks.items())


# Longer than any stream may be silent.
SILENCE = 1000 * SECOND
