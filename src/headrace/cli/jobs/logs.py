"""`headrace logs`: the log files of a job."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.job_argument import JobName, job_at
from headrace.cli.places import Home


def logs(
    app: JobName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue with new lines, until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="The number of last lines of each file.")] = 100,
    home: Home = None,
) -> None:
    """The last lines of a job's own log (runs, errors, restarts) and of Spark's, each with the name of its file before it."""
    from headrace.jobs.facts.log_files import Following, last_lines

    place = job_at(app, home)
    coming = Following(place)
    found = list(last_lines(place, lines))
    for file, text in found:
        for line in text:
            typer.echo(f"{file.name}: {line}")
    if not found:
        render.note(f"job {place.name!r} has no log yet: it never ran")
    if follow:
        try:
            for file, line in coming:
                typer.echo(f"{file.name}: {line}")
        except KeyboardInterrupt:
            return
