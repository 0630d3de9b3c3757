"""Foundations of every test: a limit of time, settings that do not come from the developer's shell, and a line for each class."""

from __future__ import annotations

import gc
import logging
import os
import re
import shlex
import signal
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from headrace.core.settings import Settings
from tests.support.examples import SEED, examples, seeds, soaked
from tests.support.leftovers import Leftover, end_leftovers, mark
from tests.support.workers import Groups, group_of, rank_of, tell_groups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer

# Seconds a test of the class may take, its fixtures included; the ini file's timeout is for all others. They end what hangs, on a machine
# with many times the load of a quiet one, too.
CEILINGS = {"spark": 400, "system": 500}
_GROUP = re.compile(r"(@[^@\]]+)+$")
LEFTOVERS = pytest.StashKey[list[Leftover]]()

# A deadline would be an assertion about the machine's load, and so would the check for slow strategies. Examples are the same in every
# run, unless HEADRACE_SEED asks for others; none come from a database that an earlier run has left.
hypothesis.settings.register_profile(
    "headrace",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=SEED is None,
    database=None,
    print_blob=True,
    max_examples=examples(100),
)
hypothesis.settings.load_profile("headrace")

# A shell lets what it starts in the background ignore interrupts, and every process inherits that: no test could interrupt another one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# As in the workers of Spark. The threads of polars help with many rows; with few they cost more than they do.
os.environ["POLARS_MAX_THREADS"] = "1"

# Most JVMs of tests end before the second compiler pays back what it costs: a session with one query takes 12 s of CPU instead of 18.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
mark()

for _name in Settings.__dataclass_fields__:
    os.environ.pop(f"HEADRACE_{_name.upper()}", None)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One quiet Spark session for all tests that use it, whatever their class."""
    from headrace.spark.session import session, stop

    # A job of a few rows takes a third of the time without the optimizing compiler.
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    running = session(Settings(master="local[2]", driver_memory="2g"), name="headrace tests", cores=2, config=quick)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    yield running
    stop(running)


def class_of(nodeid: str) -> str:
    """`fast`, `spark` or `system`; doctests of the package are a class of their own."""
    parts = Path(nodeid.split("::", maxsplit=1)[0]).parts
    return parts[1] if parts[0] == "tests" and len(parts) > 2 else "doctest"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # A module that draws `seeds` has randomized tests; those of hypothesis carry a marker of their own.
    for item in items:
        ceiling = CEILINGS.get(class_of(item.nodeid))
        if ceiling and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(ceiling))
        if getattr(getattr(item, "module", None), "seeds", None) is seeds:
            item.add_marker(pytest.mark.randomized)
        if getattr(getattr(item, "module", None), "soaked", None) is soaked:
            item.add_marker(pytest.mark.soaked)
        if SEED is not None and item.get_closest_marker("hypothesis"):
            hypothesis.seed(SEED)(item.obj)
    items.sort(key=lambda item: rank_of(item, group_of(item)))
    if hasattr(config, "workerinput"):
        tell_groups(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Groups | None:
    return Groups(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # `tell_groups` appends the group, and a worker reports by that name; without the group it can be given to pytest again.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        report.nodeid = _GROUP.sub("", report.nodeid)


def pytest_collection_finish() -> None:
    # What is loaded now stays: looking through it again and again finds nothing to collect.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    yield
    gc.unfreeze()
    # The controller of pytest-xdist: the workers have ended, and what they started must have, too.
    if session.config.pluginmanager.has_plugin("dsession"):
        left = session.config.stash[LEFTOVERS] = end_leftovers()
        if left:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    seconds: dict[str, float] = defaultdict(float)
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[class_of(report.nodeid)] += report.duration
                if outcome:
                    counts[class_of(report.nodeid)][outcome] += 1
    if left := terminalreporter.config.stash.get(LEFTOVERS, []):
        terminalreporter.section("processes left running, and killed", red=True)
        for leftover in left:
            terminalreporter.write_line(str(leftover))
    _say_how_to_repeat(terminalreporter)
    if counts:
        terminalreporter.section("classes")
    for name in ("doctest", "fast", "spark", "system"):
        if name in counts:
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts[name].items()))
            terminalreporter.write_line(f"{name:8} {outcomes} in {seconds[name]:.1f} s")


def _say_how_to_repeat(terminalreporter: pytest.TerminalReporter) -> None:
    """With seeds that are not the fixed ones, each failure names the one command that repeats it."""
    failed = dict.fromkeys(report.nodeid for outcome in ("failed", "error") for report in terminalreporter.stats.get(outcome, []))
    if SEED is None or not failed:
        return
    terminalreporter.section("to repeat")
    names = ("HEADRACE_SEED", "HEADRACE_EXAMPLES", "PYTHONHASHSEED")
    variables = " ".join(f"{name}={os.environ[name]}" for name in names if name in os.environ)
    for nodeid in failed:
        terminalreporter.write_line(f"{variables} .venv/bin/python -m pytest {shlex.quote(nodeid)}")
