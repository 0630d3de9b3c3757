"""The fraud app on Spark, killed again and again: no alert is lost, none is there twice, and the counts of cards are right."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest

from headrace.cli.demos.fraud.cards import Cards
from headrace.cli.demos.fraud.gateway import publish
from headrace.cli.demos.fraud.history import history
from headrace.cli.demos.fraud.rules import RULES
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from tests.support.examples import soaked
from tests.support.fraud import NOON, alerted, fraud_app, planted
from tests.support.marked import MARK, kill, wait_until_gone

APP = Path(__file__).parents[2] / "apps" / "fraud" / "app.py"
KILLS = soaked(2, 1)


def alerts_in(log: Log) -> int:
    try:
        return sum(part["end"] for part in log.describe("alerts")["partitions"])
    except UnknownTopic:
        return 0


def start(home: Path) -> tuple[subprocess.Popen[bytes], str]:
    run = uuid.uuid4().hex
    command = [sys.executable, "-m", "headrace", "run", str(APP), "--rows-per-epoch", "300"]
    environment = {**os.environ, MARK: run, "HEADRACE_HOME": str(home)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True), run


@pytest.mark.timeout(600)  # a start of Spark besides the warm one, two in the long form
@pytest.mark.usefixtures("spark")
def test_a_killed_fraud_job_loses_no_alert_and_writes_none_twice(tmp_path: Path) -> None:
    home, cards = tmp_path / "home", Cards(2_400, 5)
    made = history(cards, 5, begin=NOON, seconds=240, rate=20, per_case=120)
    with Log(home / "log") as log:
        publish(log, cards, made)
        for _ in range(KILLS):
            process, run = start(home)
            try:
                before, deadline = alerts_in(log), time.monotonic() + 200
                while alerts_in(log) <= before:
                    assert process.poll() is None, (process.stderr.read() if process.stderr else b"").decode()
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
            finally:
                kill(run)
                process.communicate()
            wait_until_gone(run)
        fraud_app(home).run(until="end")
        alerts = log.read("alerts").to_pylist()
        assert alerted(alerts) == planted(made.cases)
        assert {case.rule for case in made.cases} == set(RULES)
        counts = {row["card"]: row["alerts"] for row in log.snapshot("suspicious_cards").table.to_pylist()}
        assert counts == Counter(case.card for case in made.cases)
        places = [partition["end"] for partition in log.describe("payments")["partitions"]]
        assert all(place["offset"] < places[place["partition"]] for alert in alerts for place in alert["evidence"])
