"""Every scenario, performed by a job on Spark that is stopped and resumed midway; some of them, and all in `make soak`, also in one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.settings import Settings
from headrace.testing.scenarios.job import JobEngine, midpoint
from headrace.testing.scenarios.performance import perform
from headrace.testing.scenarios.scenario import Scenario
from tests.support.examples import soaked

# A story may do what the engine warns of.
pytestmark = pytest.mark.filterwarnings("ignore::headrace.core.remarks.PlanWarning")
FILES = sorted((Path(__file__).parents[2] / "scenarios").glob("*.yaml"))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("file", soaked(FILES, FILES[::7]), ids=lambda file: file.stem)
def test_the_story_is_true_on_spark(file: Path, tmp_path: Path) -> None:
    scenario = Scenario.load(file)
    with JobEngine(scenario, Settings(home=tmp_path, master="local[2]")) as job:
        assert perform(scenario, job) > 0


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_story_is_true_on_spark_stopped_and_resumed_midway(file: Path, tmp_path: Path) -> None:
    scenario = Scenario.load(file)
    with JobEngine(scenario, Settings(home=tmp_path, master="local[2]"), stops=midpoint(scenario)) as job:
        assert perform(scenario, job) > 0
