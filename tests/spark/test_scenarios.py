"""Scenarios, performed by a job on Spark that is stopped and resumed midway: one of each kind, and all in `make soak`.

Some are also performed in one run, by a streaming query of Spark's in place of the loop of small epochs. The test driver performs all of
them in every run (tests/fast/testing/test_scenarios.py), with the same operators.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.core.settings import Settings
from headrace.testing.scenarios.declaration import _METHODS, _WINDOWS
from headrace.testing.scenarios.job import JobEngine, midpoint
from headrace.testing.scenarios.performance import perform
from headrace.testing.scenarios.scenario import Scenario
from tests.support.examples import soaked

# A story may do what the engine warns of.
pytestmark = pytest.mark.filterwarnings("ignore::headrace.core.remarks.PlanWarning")
FILES = sorted((Path(__file__).parents[2] / "scenarios").glob("*.yaml"))
# What a job on Spark may do otherwise than the test driver depends on the steps and on when they emit, not on the records.
OPTIONS = ("bounded", "perfect", "loss_budget", "idle", "max_ahead", "partitions", "early", "every", "until", "ttl", "history", "as_of")
# Smallest cases of results that were once wrong.
ONCE_WRONG = ("late_parts", "session_begins_again", "session_goes_on", "sliding_behind")
ACTIONS = ("wait", "flush", "end", "accounting", "dead_letters")
WORDS = "|".join((*_METHODS, *_WINDOWS, *OPTIONS))
KINDS = re.compile(rf"\b(?:{WORDS}): |\b(?:mode|how|pick|after|rows|skip|late): \"?[a-z]+|- (?:{'|'.join(ACTIONS)})\b")


def of_each_kind(files: Sequence[Path]) -> list[Path]:
    """Stories of results that were once wrong, and others, those with most kinds first, until each kind of any story is in one of them."""
    found = [file for file in files if file.stem in ONCE_WRONG]
    missing = {kind for file in files for kind in _kinds(file)}.difference(*(_kinds(file) for file in found))
    while missing:
        found.append(max(files, key=lambda file: len(_kinds(file) & missing)))
        missing -= _kinds(found[-1])
    return sorted(found)


def _kinds(file: Path) -> set[str]:
    return set(KINDS.findall(re.sub(r"(?ms)^teaches: .*?^(?=\w)|^ *- note: .*?$", "", file.read_text(encoding="utf-8"))))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("file", soaked(FILES, FILES[::7]), ids=lambda file: file.stem)
def test_the_story_is_true_on_spark(file: Path, tmp_path: Path) -> None:
    scenario = Scenario.load(file)
    with JobEngine(scenario, Settings(home=tmp_path, master="local[2]", quick_rows=0)) as job:
        assert perform(scenario, job) > 0


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("file", soaked(FILES, of_each_kind(FILES)), ids=lambda file: file.stem)
def test_the_story_is_true_on_spark_stopped_and_resumed_midway(file: Path, tmp_path: Path) -> None:
    scenario = Scenario.load(file)
    with JobEngine(scenario, Settings(home=tmp_path, master="local[2]"), stops=midpoint(scenario)) as job:
        assert perform(scenario, job) > 0
