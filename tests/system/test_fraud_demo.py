"""The fraud demo judges every payment that it writes, finds what is planted, and ends by itself."""

import json
import os
import subprocess
import sys
import uuid
from datetime import timedelta

import pytest

from headrace.log import Log
from tests.support.fraud import alerted
from tests.support.marked import MARK, kill, wait_until_gone


@pytest.mark.timeout(400)
def test_it_judges_every_payment_and_ends_by_itself(tmp_path):
    run, home = uuid.uuid4().hex, tmp_path / "home"
    command = [sys.executable, "-m", "headrace", "demo", "fraud", "--home", str(home), "--seconds", "12", "--rate", "400"]
    try:
        answer = subprocess.run(command, env={**os.environ, MARK: run}, capture_output=True, text=True, timeout=350, check=False)
        assert (answer.returncode, answer.stderr) == (0, "stopping ...\n")
        wait_until_gone(run)
    finally:
        kill(run)
    end = json.loads(answer.stdout.splitlines()[-1])
    assert end["ended"]
    assert end["written"] == end["judged"] > 0
    with Log(home / "log") as log:
        found, planted = alerted(log.read("alerts").to_pylist()), log.read("planted").to_pylist()
        last = max(log.read("payments", columns=["paid_at"])["paid_at"].to_pylist())
    # The newest payments are not behind the watermark yet.
    complete = {(case["rule"], case["card"]) for case in planted if case["ended_at"] < last - timedelta(seconds=1)}
    assert complete
    assert complete <= set(found)
    assert set(found.values()) == {1}
