"""Random compositions of steps on Spark, all in one job that is stopped and resumed, against models of them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.core.errors import PlanError
from headrace.core.settings import Settings
from headrace.plan.plan import View
from headrace.testing.scenarios.job import JobEngine
from headrace.testing.scenarios.scenario import Scenario
from tests.support.examples import seeds, soaked
from tests.support.models.chains import Chain
from tests.support.models.inputs import Input
from tests.support.models.stories import START, Story
from tests.support.models.wide_chains import wide_chain

CHAINS = soaked(40, 24)


@dataclass(frozen=True)
class App:
    """What a job asks of a scenario."""

    declare: Callable[[hr.App], None]
    name: str = "chains"
    starts_at: datetime = START + timedelta(days=1)


class OnSpark(JobEngine):
    """A job as the driver of a story. Event time moves with the records alone, and the number of shards stays."""

    def advance(self, to: datetime) -> None: ...

    def restart(self) -> None:
        self._stop()
        self._query = self._start(None)

    def rescale(self, shards: int) -> None: ...

    def rows(self, view: str) -> list[dict[str, Any]]:
        (output,) = [output for output in self._plan.outputs if output.name == view]
        return super().rows(view) if isinstance(output, View) else self._app.log.read(view, columns=output.node.columns.names).to_pylist()


def chains(seed: int) -> list[Chain]:
    """Chains of one unit that are not refused, and whose results are rows by key or facts."""
    chance, found = random.Random(f"on Spark {seed}"), list[Chain]()
    while len(found) < CHAINS:
        chain = wide_chain(chance, chance.choice([2, 2, 3]))
        last = chain.links[-1].behind
        if chain.unit == 1 and (last.own or not last.changing) and not _refused(chain):
            found.append(chain)
    return found


def _refused(chain: Chain) -> bool:
    app = Declaration("alone")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Story(chain, 0).declare(app, Input.plain(random.Random(0), 1))
            app.plan()
    except PlanError:
        return True
    return False


@pytest.mark.usefixtures("spark")
@pytest.mark.filterwarnings("ignore::headrace.core.remarks.PlanWarning")
@pytest.mark.parametrize("seed", seeds(4))
def test_steps_behind_each_other_give_on_spark_what_they_mean(seed: int, tmp_path: Path) -> None:
    first, *others = chains(seed)
    story, chance = Story(first, seed, others), random.Random(f"records {seed}")
    source = Input.plain(chance, 1)
    scenario = cast("Scenario", App(lambda app: story.declare(app, source)))
    with OnSpark(scenario, Settings(home=tmp_path, master="local[2]", quick_rows=chance.choice([0, 1000])), tasks=2) as job:
        assert story.perform(job, chance, source) == "same"
