"""A log in a temporary directory, with a clock that moves only when told."""

import pytest

from headrace.core.clock import ManualClock
from headrace.log import Log


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def log(tmp_path, clock):
    return Log(tmp_path / "log", clock=clock)
