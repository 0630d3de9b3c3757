"""`headrace stop`: the end of a job's run."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.job_argument import JobName, job_at
from headrace.cli.places import Home


def stop(
    app: JobName,
    wait: Annotated[float, typer.Option("--wait", min=0, help="The number of seconds to wait for the end.")] = 60,
    home: Home = None,
) -> None:
    """Stop a job that runs on this machine: the current epoch finishes first. The next run continues from there."""
    from headrace.jobs.stop_request import stop as ask

    render.note(str(ask(job_at(app, home), wait)))
