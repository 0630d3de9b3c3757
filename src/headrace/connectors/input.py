"""Shared parts of inputs: their extra columns, and the bounds of an epoch."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from headrace.engine.planning.input import PROBLEM, RECORD, Ahead, Input, Position

__all__ = ["OP", "PROBLEM", "RECORD", "Ahead", "Input", "Position", "bounded", "shared_out"]

# In a table: 1 if a record becomes the live row of its key, -1 if it removes the key.
OP = "_op"


def bounded(source: Input, epoch_bytes: int | None) -> Input:
    """An input of which an epoch reads at most about this many bytes, if it knows its bytes."""
    declared: Any = source
    told = is_dataclass(declared) and "epoch_bytes" in {field.name for field in fields(declared)}
    return replace(declared, epoch_bytes=epoch_bytes) if told else source


def shared_out(start: Position, end: Position, rows: int | None) -> dict[int, int]:
    """The end position of an epoch from `start` toward `end` with about `rows` records.

    Every partition moves by the same share, so that none runs ahead of the others in event time.

    >>> shared_out({0: 0, 1: 10}, {0: 100, 1: 10, 2: 300}, 40)
    {0: 10, 1: 10, 2: 30}
    """
    waiting = {index: max(0, last - start.get(index, 0)) for index, last in end.items()}
    total = sum(waiting.values())
    share = 1.0 if rows is None or total <= rows else rows / total
    return {index: start.get(index, 0) + (max(1, int(waited * share)) if waited else 0) for index, waited in waiting.items()}
