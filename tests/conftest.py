"""What every test stands on: a ceiling of time, settings that do not come from the developer's shell, and a line for each class."""

import gc
import os
from collections import defaultdict
from pathlib import Path

import hypothesis
import pytest

from headrace.core.settings import Settings
from tests.support.examples import examples

# Seconds a test of the class may take, its fixtures included; the ini file's timeout is for all others.
CEILINGS = {"spark": 240, "system": 300}

# A deadline would be an assertion about the machine's load.
hypothesis.settings.register_profile("headrace", deadline=None, print_blob=True, max_examples=examples(100))
hypothesis.settings.load_profile("headrace")

# As in the workers of Spark. The threads of polars help with many rows; with few they cost more than they do.
os.environ["POLARS_MAX_THREADS"] = "1"

for _name in Settings.__dataclass_fields__:
    os.environ.pop(f"HEADRACE_{_name.upper()}", None)


def class_of(nodeid: str) -> str:
    """`fast`, `spark` or `system`; doctests of the package are a class of their own."""
    parts = Path(nodeid.split("::", maxsplit=1)[0]).parts
    return parts[1] if parts[0] == "tests" and len(parts) > 2 else "doctest"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        ceiling = CEILINGS.get(class_of(item.nodeid))
        if ceiling and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(ceiling))


def pytest_collection_finish() -> None:
    # What is loaded now stays: looking through it again and again finds nothing to collect.
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    seconds: dict[str, float] = defaultdict(float)
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[class_of(report.nodeid)] += report.duration
                if outcome:
                    counts[class_of(report.nodeid)][outcome] += 1
    if counts:
        terminalreporter.section("classes")
    for name in ("doctest", "fast", "spark", "system"):
        if name in counts:
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts[name].items()))
            terminalreporter.write_line(f"{name:8} {outcomes} in {seconds[name]:.1f} s")
