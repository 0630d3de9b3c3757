"""`headrace status`, `top`, `logs` and `stop`, as a person and as a program sees them."""

from __future__ import annotations

import io
import json
import logging
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from rich.console import Console

from headrace.cli.commands import execute
from headrace.cli.jobs.top import _drawn
from headrace.core.clock import ManualClock
from headrace.core.errors import JobError
from headrace.engine.planning.epoch_size import EPOCH_ROWS
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.job_log import own_log
from headrace.jobs.facts.log_files import Following
from headrace.jobs.stop_request import stop
from tests.support.processes import PATIENCE
from tests.support.terminal import plain
from tests.support.troubled import TroubledJob

# A driver that holds its job until it is told to stop; `deaf` ones do not hear.
DRIVER = """
import signal, sys, threading
from pathlib import Path
from headrace.core.clock import SystemClock
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.last_run import recorded
told = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: sys.argv[2] == "deaf" or told.set())
place = JobDirectory(Path(sys.argv[1]), "shop")
with place.held(), recorded(place, SystemClock()):
    print("holding", flush=True)
    told.wait()
"""


@pytest.fixture
def shop(tmp_path):
    job = TroubledJob(tmp_path)
    yield job
    job.log.close()


@pytest.fixture
def driver(tmp_path):
    """Starts a process that holds the job."""
    started = []

    def start(kind="hearing"):
        process = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path), kind], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "holding\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_status_tells_all_facts_as_json_and_the_steps_as_a_table(shop, capsys, monkeypatch):
    shop.send(2)
    shop.account("orders", taken=5, out=3, dead_letter=2)
    shop.commit({0: 60, 1: 0})
    assert execute(["status", "shop", "--home", str(shop.home)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["state"], told["epoch"], told["held_by"]) == ("shop", "killed", 1, "orders/1")
    assert {step["name"]: step["dead_letter"] for step in told["steps"]}["orders"] == 2
    chosen = {"rows": 2_000, "why": "an epoch of 20,000 records took 99.0 s, and 10 s are wanted", "epoch": 7}
    (shop.place.path / EPOCH_ROWS).write_text(json.dumps(chosen))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "140")
    assert execute(["status", "--home", str(shop.home)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["state", "killed"] for line in lines)
    assert any(line.split() == f"epoch rows 2,000 at most since epoch 7: {chosen['why']}".split() for line in lines)
    assert any(re.fullmatch(r"in rate +[\d,]+\.\d\d", line.strip()) for line in lines)
    assert any(line.split()[:2] == ["orders.where", "step"] for line in lines)


def test_the_status_of_a_job_that_is_not_there_names_those_that_are(shop, capsys):
    assert execute(["status", "shpo", "--home", str(shop.home)]) == 1
    assert "jobs there: shop" in capsys.readouterr().err


def test_top_shows_one_look_as_text_without_a_terminal(shop, capsys):
    shop.commit({0: 60, 1: 0})
    with shop.place.held():
        assert execute(["top", "--home", str(shop.home)]) == 0
        shown = capsys.readouterr().out
        assert execute(["top", "--home", str(shop.home), "--json"]) == 0
    (job,) = [line for line in shown.splitlines() if line.split()[:1] == ["shop"]]
    assert job.split()[1] == "running"
    assert "2026-01-01 11:59:30 (held by orders/1)" in job
    assert any(line.split()[:2] == ["orders.where", "step"] for line in shown.splitlines())
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["job"], row["step"]) for row in rows[:2]] == [("shop", None), ("shop", "orders")]


@pytest.mark.parametrize("width", [80, 100, 120, 150, 250])
def test_top_shows_numbers_whole_or_not_at_all_however_narrow_the_terminal_is(width):
    rest = {"held_by": "page_views/0", "lag_seconds": 61.0, "dead_letter": 12_345}
    job = {"job": "pageviews", "step": None, "state": "running", "epoch": 123_456, "in_rate": 39_000.0, "out_rate": 39_000.0, **rest,
           "lag": 7_654_321, "watermark": "2026-11-19T06:35:59.123+00:00", "late": 98_765,
           "state_rows": 1_234_567, "state_bytes": 99_999_999}  # fmt: skip
    step = {**job, "step": "page_views.where.window", "state": "operator", "epoch": None, "lag": None, "watermark": None, "held_by": None}
    console = Console(width=width, file=io.StringIO(), no_color=True)
    console.print(_drawn([job, step], width))
    heading, _, first, _ = (line for line in console.file.getvalue().splitlines() if line.strip())
    assert "…" not in heading
    assert "…" not in first.strip()[len("pageviews") :]
    assert all(number in first for number in ("39,000", "7,654,321 (61 s)", "06:35:59", "98,765", "12,345"))
    assert ("running" in first, "page_views/0" in first, "99,999,999" in first) == (width >= 100, width >= 120, width == 250)


def test_top_goes_on_in_a_terminal_until_it_is_interrupted(shop):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "headrace", "top", "--every", "0.1", "--home", str(shop.home)]
    environment = {**os.environ, "COLUMNS": "160", "LINES": "40", "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True) as process:
        os.close(theirs)
        written = b""
        # Two looks: it is drawn anew.
        while written.count(b"orders.where.window") < 2:
            written += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        with suppress(OSError):  # Linux says EIO when the last writer closed
            while chunk := os.read(ours, 65536):
                written += chunk
        assert process.wait(PATIENCE) == 0
    os.close(ours)
    assert "killed" in plain(written.decode())


def test_the_log_of_a_job_tells_of_its_runs_and_of_what_was_logged_meanwhile(shop, capsys):
    def run():
        with own_log(shop.place, ManualClock()):
            logging.getLogger("headrace.jobs").warning("restart %d", 1)
            raise JobError("the disk is full")

    with pytest.raises(JobError):
        run()
    logging.getLogger("headrace.jobs").warning("of nobody")
    shop.place.spark_log.write_text("one\ntwo\nthree\n")
    assert execute(["logs", "shop", "--home", str(shop.home), "-n", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "headrace.log: 2026-01-01 00:00:00 warning restart 1",
        "headrace.log: 2026-01-01 00:00:00 error the run ends: the disk is full",
        "spark.log: two",
        "spark.log: three",
    ]


def test_lines_that_come_are_followed_whole_and_once(shop):
    log = shop.place.spark_log
    log.write_text("old\n")
    coming = Following(shop.place)
    assert list(coming.new()) == []
    with log.open("a") as file:
        file.write("new\nhal")
    assert [line for _, line in coming.new()] == ["new"]
    with log.open("a") as file:
        file.write("f\n")
    assert [line for _, line in coming.new()] == ["half"]
    log.write_text("anew\n")
    assert [line for _, line in coming.new()] == ["anew"]


def test_a_job_is_stopped_by_the_process_that_its_directory_names(shop, driver, capsys):
    process = driver()
    assert execute(["stop", "shop", "--home", str(shop.home)]) == 0
    assert f"job 'shop' is stopped after epoch 0 (process {process.pid})" in capsys.readouterr().err
    assert process.wait(PATIENCE) == 0
    assert execute(["stop", "shop", "--home", str(shop.home)]) == 0
    assert "job 'shop' is not running" in capsys.readouterr().err


def test_a_job_that_does_not_stop_in_time_is_told_so_and_left_alone(shop, driver):
    process = driver("deaf")
    with pytest.raises(JobError, match=f"process {process.pid} still runs after 0.2 s"):
        stop(shop.place, 0.2)
    assert process.poll() is None


def test_no_process_is_signaled_that_only_has_the_number_of_the_driver(shop):
    place = JobDirectory(shop.home, "shop")
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        with place.held():
            (place.path / "driver").write_text(f"{place.driver}9")
            with pytest.raises(JobError, match="its driver is not a process of this machine"):
                stop(place, 0)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == []
