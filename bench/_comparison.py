"""A benchmark of the engine: both sides on one Spark, what is claimed of their answers, and the last line."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from _harness import Measure, finish, machine
from _spark_job import JobSide
from _spark_side import SparkSide

from headrace.core.settings import Settings
from headrace.log import Log
from headrace.spark.session import session

HERE = Path(__file__).parent
_S = TypeVar("_S")


class Comparison(Generic[_S]):
    """Both sides, how much is measured, and whether every answer was right."""

    def __init__(self, ours: JobSide, peer: SparkSide, log: Log, size: _S) -> None:
        self.ours, self.peer, self.log, self.size = ours, peer, log, size
        self.correct = True
        self.figures: dict[str, Any] = {}

    def _shown(self, measure: Measure) -> Measure:
        print(measure.show(), flush=True)
        self.figures[measure.name] = measure.figures()
        return measure

    def _claim(self, holds: bool, what: str) -> None:
        print(f"{'ok   ' if holds else 'WRONG'} {what}", flush=True)
        self.correct = self.correct and bool(holds)


_C = TypeVar("_C", bound=Comparison[Any])
Targets = dict[str, dict[str, float]]


def perform(
    bench: str,
    kind: Callable[[JobSide, SparkSide, Log, Any], _C],
    size: object,
    measured: Callable[[_C, Path], Targets],
    config: Mapping[str, str] | None = None,
) -> None:
    """Start Spark, with `config` if given, measure, and print the last line."""
    state = machine()
    print(f"machine: {state}; {size}", flush=True)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory:
        home, cores = Path(directory), os.cpu_count() or 2
        settings = Settings(home=home, master=f"local[{cores}]", driver_memory="3g")
        log = Log(home / "log")
        spark = session(settings, name="bench", cores=cores, output=home / "spark.log", config=config)
        comparison = kind(JobSide(spark, settings, cores), SparkSide(spark, log), log, size)
        targets = measured(comparison, home)
        spark.stop()
    figures, load = comparison.figures, machine()["load"]
    finish(bench, correct=comparison.correct, targets=targets, figures=figures, machine={**state, "load_after": load})
