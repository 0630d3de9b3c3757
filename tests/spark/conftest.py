"""One quiet Spark session for all tests of this class."""

import logging
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from headrace.core.settings import Settings
from headrace.spark.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    running = session(Settings(master="local[2]", driver_memory="2g"), name="headrace tests", cores=2)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    yield running
    running.stop()
