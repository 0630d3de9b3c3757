"""Work on a Spark master with executors of its own: `on_cluster.py HOME APP SCENARIO...`.

Each scenario is stopped and resumed midway; the app, of which another process has done a part, is run to its end.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from headrace.app import App
from headrace.core.remarks import PlanWarning
from headrace.core.settings import load_settings
from headrace.spark.session import session, stop
from headrace.testing.scenarios.job import JobEngine, midpoint
from headrace.testing.scenarios.performance import perform
from headrace.testing.scenarios.scenario import Scenario


def main(home: Path, app: Path, files: list[Path]) -> None:
    # A story may do what the engine warns of.
    warnings.simplefilter("ignore", PlanWarning)
    settings = load_settings(home=home)
    spark = session(settings, cores=2)
    try:
        for file in files:
            scenario = Scenario.load(file)
            with JobEngine(scenario, load_settings(home=home / file.stem), tasks=2, stops=midpoint(scenario)) as job:
                print(file.stem, perform(scenario, job), flush=True)
        names: dict[str, App] = {}
        exec(app.read_text(), names)
        names["app"].run(until="end")
        executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
        print("executors", executors)
    finally:
        stop(spark)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
