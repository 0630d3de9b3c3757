"""Tests that share a session or a server run in one worker of pytest-xdist."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.leftovers import RUN
from tests.support.processes import PATIENCE

ROOT = Path(__file__).parents[3]
# What the controller hears from its worker, before any test runs.
LISTENER = """
import pytest

class Listener:
    def pytest_xdist_node_collection_finished(self, ids):
        print(*ids, sep="\\n")
        pytest.exit("collected", returncode=0)

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Listener())
"""


@pytest.mark.timeout(600)  # a run of pytest within this one
def test_pytest_xdist_gets_the_group_of_each_test_and_the_chains_first(tmp_path):
    (tmp_path / "listener.py").write_text(LISTENER)
    files = ["tests/fast/project/test_workers.py", "tests/system/test_kafka_time.py", "tests/spark/test_equals_driver.py"]
    # A run of its own: with the mark of this one, it would end its workers when it ends.
    environment = {name: value for name, value in os.environ.items() if name != RUN and not name.startswith("PYTEST_")}
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "listener", "--numprocesses=1", "--dist=loadgroup", *files],
        cwd=ROOT, env=environment | {"PYTHONPATH": str(tmp_path)}, stdout=subprocess.PIPE, text=True, timeout=4 * PATIENCE, check=True,
    ).stdout  # fmt: skip
    tests = [line.partition("::") for line in told.splitlines() if "::" in line]
    groups = dict.fromkeys((file, test.rpartition("@")[2]) for file, _, test in tests)
    assert list(groups) == list(zip(reversed(files), ("spark", "servers", files[0]), strict=True))
