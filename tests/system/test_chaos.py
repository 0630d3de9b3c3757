"""`headrace chaos`: a job that is killed again and again has done everything once, and an output that has not is found out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# The function of a step makes the worker that calls it forget which epochs it has written to one of the topics, as a sink without a note
# of them would.
APP = """
import uuid
from dataclasses import replace

import headrace as hr

app = hr.App("pageviews", home={home!r})
views = app.stream(
    "page_views", schema="url string, user string, ms int, at timestamp", key="url", time="at", watermark=hr.bounded("30 seconds")
)
slow = views.where("ms > 3")
app.view("per_url", slow.window(hr.tumbling("1 minute"), by="url").agg(views="count(*)", total="sum(ms)"))
app.view("per_user", views.group("user", ttl=None).agg(views="count(*)"))
app.sink(slow.select("url, upper(user) as user, ms"), hr.log("visits"), name="visits")
app.sink(views, hr.parquet({home!r} + "/files"), name="files")


def forgetting(event, state, timers):
    from headrace.connectors.log.output import LogOutput

    if not hasattr(LogOutput, "careful"):
        LogOutput.careful = LogOutput.write
        LogOutput.write = lambda self, writer, epoch, changes, dead: LogOutput.careful(
            self, replace(writer, job=uuid.uuid4().hex) if self.topic == "forgotten" else writer, epoch, changes, dead
        )
    yield {{"url": event.url, "ms": event.ms}}


forgotten = views.process(forgetting, by="url", state="n int", returns="url string, ms int", ttl="1 hour")
app.sink(forgotten, hr.log("forgotten"), name="forgotten")
"""


@pytest.mark.timeout(600)  # four starts of Spark
def test_a_job_killed_in_every_way_does_everything_once_and_a_sink_that_knows_no_repetition_is_found_out(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(APP.format(home=str(tmp_path / "home")))
    kinds = ["failpoint:sink.accounting.before@2", "replaced", "worker"]
    options = ["--faults", "3", "--rate", "300", "--seed", "11", *(word for kind in kinds for word in ("--kind", kind))]
    command = [sys.executable, "-m", "headrace", "chaos", str(file), "--keep", str(tmp_path / "chaos"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "3 faults" in done.stderr, done.stderr
    assert "counted" not in done.stderr
    found = {row["output"]: row for row in map(json.loads, done.stdout.splitlines())}
    doubled = found.pop("forgotten")
    assert (doubled["lost"], doubled["duplicated"] > 0) == (0, True)
    assert set(found) == {"per_url", "per_user", "visits", "files", "page_views.late", "page_views.dead"}
    assert {name: (row["lost"], row["duplicated"]) for name, row in found.items()} == dict.fromkeys(found, (0, 0))
    assert min(found[name]["found"] for name in ("per_url", "per_user", "visits", "files", "page_views.late")) > 0
    # The original has not been touched.
    assert not (tmp_path / "home").exists()
