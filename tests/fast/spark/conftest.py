"""Python processes as Spark starts them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace.spark
from headrace.spark.workers import quick_start as starting

PYTHON = Path(headrace.spark.__file__).with_name("workers") / "python.sh"


@pytest.fixture(scope="session")
def fork_server() -> Iterator[dict[str, str]]:
    """What leads to a fork server, as the environment of those who start a process."""
    names = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "HEADRACE_WORKER_PYTHON", "HEADRACE_WORKER_PATH", "HEADRACE_FORK_SERVER")
    before = {name: os.environ.get(name) for name in names}
    starting.set_python(local=True)
    yield dict(os.environ)
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
