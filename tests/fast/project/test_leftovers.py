"""A process that a test leaves running is found, named by its test, and killed."""

import os
import subprocess

from tests.support.leftovers import RUN, end_leftovers
from tests.support.processes import PATIENCE


def test_a_process_left_running_is_killed_and_the_test_that_started_it_is_named(monkeypatch, request):
    monkeypatch.setenv(RUN, "a run of its own")
    with subprocess.Popen(["sleep", "600"]) as left, subprocess.Popen(["sleep", "600"], env=os.environ | {RUN: "another"}) as other:
        try:
            (found,) = end_leftovers(grace=0)
            assert found.process == left.pid
            assert found.command.split() == ["sleep", "600"]
            assert str(found).startswith(request.node.nodeid)
            assert left.wait(PATIENCE) != 0
            assert end_leftovers() == []
            assert other.poll() is None
        finally:
            left.kill()
            other.kill()
