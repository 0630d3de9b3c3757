"""Failures of a query that may be temporary, and the number of restarts."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as hr
from headrace.core.settings import Settings
from headrace.jobs.directory import JobDirectory
from headrace.jobs.start.acceptance import accept, reach
from headrace.jobs.start.assembly import inputs_of
from headrace.jobs.start.restarts import Restarts, may_pass

CRASHED = (
    "[STREAM_FAILED] Query [id = 30c0] terminated with exception: Job aborted due to stage failure: Task 1 in stage 1.0 failed 1 times, "
    "most recent failure: Lost task 1.0 in stage 1.0 (TID 3) (localhost executor driver): org.apache.spark.SparkException: Python worker "
    "exited unexpectedly (crashed). Consider setting 'spark.python.worker.faulthandler.enabled'\nCaused by: java.io.EOFException"
)
RAISED = (
    "[STREAM_FAILED] Query [id = 30c0] terminated with exception: Job aborted due to stage failure: org.apache.spark.api.python."
    'PythonException: Traceback (most recent call last):\n  File "app.py", line 3\n{raised}\n\n\tat org.apache.spark.api.python'
)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (CRASHED, True),
        (RAISED.format(raised="MemoryError: "), True),
        (RAISED.format(raised="ConnectionResetError: [Errno 104] Connection reset by peer"), True),
        (RAISED.format(raised="OSError: [Errno 28] No space left on device"), False),
        (RAISED.format(raised="ValueError: less than nothing"), False),
        (RAISED.format(raised="headrace.core.errors.JobError: records are missing"), False),
        (RAISED.format(raised="headrace.core.errors.ConnectorError: the server refused: Connection reset by peer"), False),
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", False),
    ],
)
def test_only_what_no_code_decided_may_pass(text: str, passes: bool) -> None:
    assert may_pass(text) is passes


def test_pauses_double_and_a_finished_epoch_begins_the_row_anew() -> None:
    restarts = Restarts(3)
    assert [restarts.pause(epoch) for epoch in (7, 7, 8, 8, 8, 8)] == [1, 2, 1, 2, 4, None]
    assert restarts.count == 5
    assert Restarts(0).pause(1) is None


def test_a_master_with_executors_elsewhere_is_refused_unless_the_settings_spell_that_it_is_experimental(tmp_path: Path) -> None:
    app = hr.App("clicks", home=tmp_path)
    app.view("per_url", app.stream("clicks", "url string").group("url", ttl=None).agg(n="count(*)"))
    place = JobDirectory(tmp_path, "clicks")
    for master in ("spark://head:7077", "yarn", "local-cluster[2,1,1024]"):
        with pytest.raises(hr.SettingsError, match="which is experimental"):
            accept(app.plan(), Settings(home=tmp_path, master=master), app.log, place)
        accept(app.plan(), Settings(home=tmp_path, master=master, cluster="experimental"), app.log, place)
    accept(app.plan(), Settings(home=tmp_path, master="local[4]"), app.log, place)


def test_a_view_with_rows_of_a_job_that_is_gone_is_refused(tmp_path: Path) -> None:
    app = hr.App("clicks", home=tmp_path)
    app.view("per_url", app.stream("clicks", "url string").group("url", ttl=None).agg(n="count(*)"))
    app.log.create_topic("per_url", schema="url string, n bigint")
    place = JobDirectory(tmp_path, "clicks")
    accept(app.plan(), app.settings, app.log, place)
    with app.log.producer() as producer:
        producer.send("per_url", {"url": "/", "n": 1})
    with pytest.raises(hr.JobError, match="view 'per_url' has rows, and job 'clicks' has not begun"):
        accept(app.plan(), app.settings, app.log, place)


def test_a_server_that_does_not_answer_is_told_without_spark(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = hr.App("orders", home=tmp_path)
    orders = app.stream("orders", "id int", source=hr.kafka("orders", servers="127.0.0.1:1", patience="1 second"))
    app.sink(orders, hr.log("kept"))
    with caplog.at_level(logging.WARNING), pytest.raises(hr.ConnectorError, match=r"topic 'orders' on 127\.0\.0\.1:1 failed"):
        reach(app.plan(), inputs_of(app.plan(), app.log), {})


def test_what_a_run_warns_of_is_shown_where_the_program_has_no_handler_of_its_own(tmp_path: Path) -> None:
    program = f"""
import logging, pathlib
from headrace.core.clock import SystemClock
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.job_log import own_log
place = JobDirectory(pathlib.Path({str(tmp_path)!r}), "clicks")
place.path.mkdir(parents=True)
with own_log(place, SystemClock()):
    logging.getLogger("headrace.jobs").warning("the input was declared complete")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "the input was declared complete\n"
