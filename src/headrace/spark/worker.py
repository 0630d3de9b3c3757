"""What a Python worker of Spark does once in its life, and what it tells of itself."""

from __future__ import annotations

import gc
from functools import cache

_left: list[bool] = []


@cache
def settle() -> None:
    """Take what is loaded by now out of the garbage collector's sight.

    Spark has a worker look through all of its objects after every task, those of the modules too: about 60 ms a task.
    """
    gc.collect()
    gc.freeze()


def leave_state() -> None:
    """Say that the task at work leaves state in memory, for the next one of its number."""
    _left.append(True)


def left_state() -> bool:
    """Whether the task that has just ended did so."""
    left = bool(_left)
    _left.clear()
    return left
