"""`headrace chaos`: a job that is killed again and again has done everything once, and one that has not is found out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

APP = """
import headrace as hr

app = hr.App("pageviews", home={home!r})
views = app.stream(
    "page_views", schema="url string, user string, ms int, at timestamp", key="url", time="at", watermark=hr.bounded("30 seconds")
)
slow = views.where("ms > 3")
app.view("per_url", slow.window(hr.tumbling("1 minute"), by="url").agg(views="count(*)", total="sum(ms)"))
app.view("per_user", views.group("user", ttl=None).agg(views="count(*)"))
app.sink(slow.select("url, upper(user) as user, ms"), hr.log("visits"))
app.sink(views, hr.parquet({home!r} + "/files"), name="files")
"""
# The function of a step makes the worker that calls it forget which epochs it has written, as a sink without a note of them would.
FORGETFUL = """
import uuid
from dataclasses import replace

import headrace as hr

app = hr.App("pageviews", home={home!r})
views = app.stream("page_views", schema="url string, ms int, at timestamp", key="url", time="at", watermark=hr.bounded("30 seconds"))


def forgotten(event, state, timers):

    from headrace.connectors.log.output import LogOutput

    if not hasattr(LogOutput, "careful"):
        LogOutput.careful = LogOutput.write
        LogOutput.write = lambda self, writer, epoch, changes, dead: LogOutput.careful(
            self, replace(writer, job=uuid.uuid4().hex) if self.topic == "visits" else writer, epoch, changes, dead
        )
    yield {{"url": event.url, "ms": event.ms}}


app.sink(views.process(forgotten, by="url", state="n int", returns="url string, ms int", ttl="1 hour"), hr.log("visits"))
"""


def chaos(directory: Path, app: str, *options: str) -> tuple[int, dict[str, dict[str, Any]], str]:
    """The exit code, what was found of each output, and what was said."""
    file = directory / "app.py"
    file.write_text(app.format(home=str(directory / "home")))
    command = [sys.executable, "-m", "headrace", "chaos", str(file), "--rate", "300", "--seed", "11", *options]
    # The second compiler costs more than these few epochs gain by it.
    environment = {**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, {row["output"]: row for row in map(json.loads, done.stdout.splitlines())}, done.stderr


@pytest.mark.timeout(600)  # four starts of Spark
def test_a_job_killed_in_every_way_loses_and_doubles_nothing(tmp_path: Path) -> None:
    kinds = ["--kind", "failpoint", "--kind", "replaced", "--kind", "worker"]
    code, found, said = chaos(tmp_path, APP, "--faults", "3", *kinds)
    assert code == 0, said
    assert "3 faults" in said
    assert {row["output"]: (row["lost"], row["duplicated"]) for row in found.values()} == dict.fromkeys(found, (0, 0))
    assert {"per_url", "per_user", "files", "page_views.late", "page_views.dead"} < set(found)
    assert min(found[name]["found"] for name in ("per_url", "per_user", "files", "page_views.late")) > 0
    # The original has not been touched.
    assert not (tmp_path / "home").exists()


@pytest.mark.timeout(600)
def test_a_sink_that_does_not_know_a_repetition_is_found_out(tmp_path: Path) -> None:
    code, found, said = chaos(tmp_path, FORGETFUL, "--faults", "1", "--kind", "failpoint:sink.accounting.before")
    assert code == 1, said
    assert found["page_views.process.sink"]["duplicated"] > 0
    assert found["page_views.process.sink"]["lost"] == 0
