"""A stage of a job that Spark runs in a Python worker: rows of the wire go in and come out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import pyarrow as pa

from headrace.spark.worker import settle


class Stage(ABC):
    """What `mapInArrow` is given; it travels to the tasks."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        return self.run(batches)

    @abstractmethod
    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What becomes of the rows of one task."""


class Both(Stage):
    """Two stages in one Python worker: each that takes part in a task costs a process."""

    def __init__(self, first: Stage, second: Stage) -> None:
        self._first = first
        self._second = second

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._second.run(self._first.run(batches))
