"""The set-up of a Python worker of Spark, once in its life, and its report on itself."""

from __future__ import annotations

import gc
from functools import cache

_left: list[bool] = []
_retired: list[bool] = []


@cache
def settle() -> None:
    """Exclude everything loaded so far from garbage collection.

    Spark makes a worker scan all of its objects after every task, those of the modules too: about 60 ms for each task.
    """
    gc.collect()
    gc.freeze()


def leave_state() -> None:
    """Record that this task leaves state in memory, for the next one of its number."""
    _left.append(True)


def left_state() -> bool:
    """Whether the task that has just ended left state."""
    left = bool(_left)
    _left.clear()
    return left


def retire() -> None:
    """Let this process end after its task: it has dropped much state, and memory that was used once is kept by its allocators."""
    _retired.append(True)


def retired() -> bool:
    """Whether the task that has just ended was the last one of this process."""
    return bool(_retired)
