"""The start of Spark's Python processes."""

import pytest

from headrace.core.remarks import PlanWarning
from headrace.spark.workers import quick_start


def test_our_daemon_serves_the_version_of_spark_that_it_was_tested_with() -> None:
    assert quick_start._daemon(quick_start.TESTED[-1]) == {"spark.python.daemon.module": "headrace.spark.workers.daemon"}


def test_another_version_of_spark_keeps_its_own_daemon_and_says_so() -> None:
    with pytest.warns(PlanWarning, match="PySpark 9.9.9 is not a version"):
        assert quick_start._daemon("9.9.9") == {}
