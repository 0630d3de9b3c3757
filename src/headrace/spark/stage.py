"""A stage of a job that Spark runs in a Python worker: rows of the wire go in and come out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark import TaskContext

from headrace.spark.workers.worker import settle


def task_number() -> int:
    """The number of this task in its stage."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


class Stage(ABC):
    """The argument of `mapInArrow`; it is sent to the tasks."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        return self.run(batches)

    @abstractmethod
    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The output for the rows of one task."""


class Both(Stage):
    """Two stages in one Python worker: each separate one costs a process in every task."""

    def __init__(self, first: Stage, second: Stage) -> None:
        self._first = first
        self._second = second

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._second.run(self._first.run(batches))
