"""The tasks of each epoch of a query: its plan says whether there is one or several, and Spark gets a plan of its own for each batch."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from py4j import java_gateway  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from headrace.checkpoint.epoch_files import stored_plan
from headrace.checkpoint.journal import OFFSETS, entry
from headrace.engine.planning.quick_epochs import LAST_OF_SEVERAL, ONE
from headrace.spark.quick import WholeEpochs


class EpochTasks:
    """Runs the batches of a query: `whole` has those in one task, and `several` makes the stages of one in several tasks.

    Those keep its state in memory or not.

    The source has stored the plan of the epoch before Spark asks for its tasks.
    """

    def __init__(self, checkpoint: Path, whole: WholeEpochs, several: Callable[[DataFrame, bool], DataFrame]) -> None:
        self._checkpoint, self._whole, self._several = checkpoint, whole, several

    def __call__(self, rows: DataFrame, batch: int) -> None:
        tasks = stored_plan(entry(self._checkpoint, OFFSETS, batch)).tasks
        if tasks == ONE:
            self._whole.run(batch)
        else:
            self._whole.leave_memory()
            # What Spark's own sinks do, without a plan of their own.
            self._several(rows, tasks != LAST_OF_SEVERAL)._jdf.queryExecution().toRdd().count()  # noqa: SLF001


def accept_at_any_socket() -> None:
    """Let Py4J wait at a socket whatever its number.

    It uses `select`, which takes numbers below 1,024 only. In a process with more open files its server ends in silence, and the batch that
    calls it waits for ever.
    """
    java_gateway.select = SimpleNamespace(select=_ready)


def _ready(reading: list[Any], _writing: list[Any], _failing: list[Any], timeout: float | None = None) -> tuple[list[Any], ...]:
    return wait(reading, timeout), [], []
