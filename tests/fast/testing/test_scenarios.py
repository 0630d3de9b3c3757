"""Every scenario, performed by the test driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.api.declaration import Declaration
from headrace.testing.driver import TestDriver
from headrace.testing.scenarios.performance import perform
from headrace.testing.scenarios.scenario import Scenario

# A story may do what the engine warns of.
pytestmark = pytest.mark.filterwarnings("ignore::headrace.core.remarks.PlanWarning")
FILES = sorted((Path(__file__).parents[3] / "scenarios").glob("*.yaml"))


def driver_of(scenario: Scenario, shards: int = 2) -> TestDriver:
    app = Declaration(scenario.name)
    scenario.declare(app)
    return TestDriver(app, shards=shards, partitions=scenario.partitions, starts_at=scenario.starts_at)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_story_is_true(file: Path) -> None:
    scenario = Scenario.load(file)
    with driver_of(scenario) as driver:
        assert perform(scenario, driver) > 0


def test_every_story_is_listed_in_the_documents_under_its_title() -> None:
    page = (FILES[0].parents[1] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    titles = {file.name: file.read_text(encoding="utf-8").splitlines()[0].removeprefix("title: ") for file in FILES}
    missing = [name for name, title in titles.items() if f"[{Path(name).stem}](../scenarios/{name}) | {title} |" not in page]
    assert missing == []
    assert page.count("](../scenarios/") == len(FILES)
