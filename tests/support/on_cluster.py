"""Work on a Spark master with executors of its own: `on_cluster.py HOME APP SCENARIO...`.

The app is run until it has caught up; then it gets more records, and is run to its end. Between, each scenario is stopped and resumed
midway. It is the app that starts Spark, as `headrace run` would.
"""

from __future__ import annotations

import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import SparkSession

from headrace.app import App
from headrace.core.remarks import PlanWarning
from headrace.core.settings import load_settings
from headrace.spark.session import stop
from headrace.testing.scenarios.job import JobEngine, midpoint
from headrace.testing.scenarios.performance import perform
from headrace.testing.scenarios.scenario import Scenario

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def batches() -> list[list[dict[str, Any]]]:
    """What is sent before the first run of the app, and before its second."""
    random = Random(5)
    moments = [NOON + timedelta(seconds=n / 4 - random.random() * 9) for n in range(800)]
    rows = [{"url": f"/{random.randrange(9)}", "user": f"u{random.randrange(40)}", "at": at} for at in moments]
    return [[*rows[:400], {"url": "/bad", "user": "x", "at": None}], rows[400:]]


def send(app: App, rows: list[dict[str, Any]]) -> None:
    with app.log.producer(acks="all") as producer:
        for row in rows:
            producer.send("page_views", row)


def main(home: Path, file: Path, scenarios: list[Path]) -> None:
    # A story may do what the engine warns of.
    warnings.simplefilter("ignore", PlanWarning)
    names: dict[str, App] = {}
    exec(file.read_text(), names)
    app = names["app"]
    app.run(until="caught-up")
    spark = SparkSession.builder.getOrCreate()
    try:
        for path in scenarios:
            scenario = Scenario.load(path)
            with JobEngine(scenario, load_settings(home=home / path.stem), tasks=2, stops=midpoint(scenario)) as job:
                print(path.stem, perform(scenario, job), flush=True)
        send(app, batches()[1])
        app.run(until="end")
        executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
        print("executors", executors)
    finally:
        stop(spark)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
