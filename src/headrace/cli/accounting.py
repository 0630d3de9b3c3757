"""`headrace accounting`: what became of every record of a job."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.places import Home, log_at


def accounting(
    app: Annotated[str, typer.Argument(metavar="APP", help="The name of the app.")],
    by_epoch: Annotated[bool, typer.Option("--epochs", help="A row for each epoch and step.")] = False,
    by_state: Annotated[bool, typer.Option("--state", help="What each step remembers: rows and bytes.")] = False,
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """For each step: records in = out + late + duplicate + filtered + dead letters. What does not add up is an error."""
    from headrace.core.errors import JobError
    from headrace.core.settings import load_settings
    from headrace.jobs.directory import JobDirectory
    from headrace.jobs.report import epochs, hot_keys, state, totals
    from headrace.operators.accounting import ENDS

    directory = JobDirectory(load_settings(home=home).home, app)
    record = directory.record()
    if record is None:
        raise JobError(f"there is no job {app!r} in {directory.path.parent}", hint="run it first (headrace run app.py), or name its --home")
    log = log_at(home)
    if by_state:
        render.table(state(log, app, record), as_json=as_json, empty="no step remembers anything")
        return
    rows = epochs(log, app, record).to_dicts() if by_epoch else totals(log, app, record)
    for hot in hot_keys(log, app):
        if hot.trouble:
            render.note(str(hot))
    render.table(rows, as_json=as_json, empty="no records moved yet")
    if any(row["in"] != sum(row[end] for end in ENDS) for row in rows):
        raise JobError(f"the accounting of job {app!r} does not add up", why="records are missing or were counted twice")
