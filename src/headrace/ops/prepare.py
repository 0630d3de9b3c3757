"""A quicker start of Spark: a small job is run once, and the classes it needed are kept in an archive."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from headrace.core.errors import HeadraceError, JobError

# Runs in a process of its own: its JVM writes the archive when it ends. The steps load what jobs consist of: one that Spark evaluates, one
# that it doesn't, a window, a view.
_JOB = """
import sys
from datetime import UTC, datetime
import headrace as hr
from headrace.jobs.start.run import JobRun
from headrace.spark.session import shutdown
from headrace.spark.workers.quick_start import java_options

app = hr.App("prepare")
views = app.stream("views", schema="url string, at timestamp", key="url", time="at", watermark=hr.bounded("1 second"))
named = views.where("url is not null").with_columns(name="soundex(url)")
app.view("counted", named.window(hr.tumbling("1 minute"), by=["url", "name"]).agg(views="count(*)"))
with app.log.producer() as producer:
    for minute in range(3):
        producer.send("views", {"url": "/", "at": datetime(2026, 1, 1, 12, minute, tzinfo=UTC)})
config = {"spark.driver.defaultJavaOptions": java_options(archive=sys.argv[1])}
JobRun(app.plan(), app.settings, app.log, config=config).run("end", rows_per_epoch=2)
assert app.read("counted").num_rows == 3
shutdown(patience=600)
"""


def prepare(archive: Path) -> int:
    """Write the archive of classes, and return its size."""
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".prepare-") as folder:
            made = Path(folder) / archive.name
            environment = {**os.environ, "HEADRACE_HOME": folder, "HEADRACE_MASTER": "local[2]"}
            answer = subprocess.run([sys.executable, "-c", _JOB, str(made)], capture_output=True, text=True, check=False, env=environment)
            if answer.returncode or not made.exists():
                raise _refused(answer)
            made.replace(archive)
    except OSError as error:
        raise HeadraceError(
            f"{archive.parent} cannot be written: {error.strerror}", hint="run it as the owner of this Python environment"
        ) from error
    return archive.stat().st_size


def _refused(answer: subprocess.CompletedProcess[str]) -> JobError:
    said = [line for line in answer.stderr.splitlines() if line and not line.startswith(" ")]
    return JobError(
        f"the job that loads Spark's classes stopped: {said[-1] if said else 'it said nothing'}",
        hint="headrace doctor says what is missing",
    )
