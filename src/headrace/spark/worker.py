"""What a Python worker of Spark does once in its life."""

from __future__ import annotations

import gc
from functools import cache


@cache
def settle() -> None:
    """Take what is loaded by now out of the garbage collector's sight.

    Spark has a worker look through all of its objects after every task, those of the modules too: about 60 ms a task.
    """
    gc.collect()
    gc.freeze()
