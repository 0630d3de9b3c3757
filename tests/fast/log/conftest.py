"""A log in a temporary directory, with a clock that moves only when told."""

from contextlib import ExitStack

import pytest

from headrace.core.clock import ManualClock
from headrace.log import Log


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def log(tmp_path, clock):
    with Log(tmp_path / "log", clock=clock) as opened:
        yield opened


@pytest.fixture
def open_log(tmp_path, clock):
    """The log as other processes see it: each call opens the same directory once more."""
    with ExitStack() as logs:
        yield lambda: logs.enter_context(Log(tmp_path / "log", clock=clock))


@pytest.fixture
def join(open_log):
    """Another member of a group, with a log of its own."""

    def joined(topics="clicks", group="billing", **settings):
        return open_log().consumer(topics, group=group, **settings)

    return joined


@pytest.fixture
def clicks(log):
    """A topic with four partitions."""
    return log.create_topic("clicks", partitions=4).name
