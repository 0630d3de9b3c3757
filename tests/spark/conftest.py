"""One quiet Spark session for all tests of this class."""

import logging
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from headrace.core.settings import Settings
from headrace.spark.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Tests are over before the optimising compiler pays back what it costs: a job of a few rows takes a third of the time without.
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    running = session(Settings(master="local[2]", driver_memory="2g"), name="headrace tests", cores=2, config=quick)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    yield running
    running.stop()
