"""The number of writers of sinks that tests kill: a sample of the thousand that `bench/chaos.py` kills, which must not shrink unseen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.core import failpoints
from headrace.testing.conformance import Subject
from headrace.testing.conformance.cases import a_writer_killed_at_any_step_has_written_all_or_nothing
from headrace.testing.conformance.subject import SubjectWriter, made
from headrace.testing.faults import FAILPOINTS, faults
from tests.system import (
    test_http_sink,
    test_kafka_sink,
    test_lake_sinks,
    test_log_sink,
    test_postgres_sink,
    test_redis_sink,
    test_search_sinks,
)
from tests.system.test_lake_sinks import DeltaSubject
from tests.system.test_log_sink import LogSubject

AT_LEAST = 60
# The tests of each kind of sink, and the failpoints on an epoch's way, each of which kills one writer, if not more.
STEPS: dict[ModuleType, tuple[str, ...]] = {
    test_log_sink: ("disk.write.", "disk.sync."),
    test_lake_sinks: ("stage.", "publish.commit."),
    test_search_sinks: ("search.bulk.", "search.mark."),
    test_postgres_sink: ("postgres.",),
    test_redis_sink: ("redis.",),
    test_kafka_sink: ("kafka.",),
    test_http_sink: ("http.",),
}


def test_at_least_sixty_writers_are_killed_and_some_of_every_sink() -> None:
    kills = {module.__name__: len(_points(steps)) * sum(_runs(test) for test in _tests(module)) for module, steps in STEPS.items()}
    # A request for each record.
    kills[test_http_sink.__name__] *= len(made(1))
    assert 0 not in kills.values(), kills
    assert sum(kills.values()) >= AT_LEAST, kills


def test_an_epoch_passes_the_steps_that_are_counted(tmp_path: Path) -> None:
    subjects: dict[ModuleType, Subject] = {
        test_log_sink: LogSubject(tmp_path / "log", ()),
        test_lake_sinks: DeltaSubject(tmp_path / "delta", ()),
    }
    for module, subject in subjects.items():
        with faults(""):
            SubjectWriter(subject).write(1, made(1))
            assert _points(STEPS[module]) <= set(failpoints.hits)


def _points(steps: tuple[str, ...]) -> set[str]:
    return {name for name in FAILPOINTS if name.startswith(steps)}


def _tests(module: ModuleType) -> Iterator[Any]:
    return (found for name, found in vars(module).items() if name.startswith("test_") and hasattr(found, "pytestmark"))


def _runs(test: Any) -> int:
    """With how many sinks a test runs the case that kills at every step."""
    values = {mark.args[0]: mark.args[1] for mark in test.pytestmark if mark.name == "parametrize"}
    if a_writer_killed_at_any_step_has_written_all_or_nothing not in values.pop("case", ()):
        return 0
    return math.prod(len(given) for given in values.values())
