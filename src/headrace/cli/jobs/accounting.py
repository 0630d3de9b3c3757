"""`headrace accounting`: the fate of every record of a job."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.job_argument import no_job
from headrace.cli.places import Home, log_at


def accounting(
    app: Annotated[str, typer.Argument(metavar="APP", help="The name of the app.")],
    by_epoch: Annotated[bool, typer.Option("--epochs", help="A row for each epoch and step.")] = False,
    by_state: Annotated[bool, typer.Option("--state", help="The state of each step: rows and bytes.")] = False,
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """Show what became of every record at each step: in = out + late + duplicate + filtered + dead letters. A difference is an error."""
    from headrace.core.errors import JobError
    from headrace.core.settings import load_settings
    from headrace.engine.accounting import ENDS
    from headrace.jobs.directory import JobDirectory
    from headrace.jobs.facts.accounting import JobAccounting
    from headrace.jobs.facts.report import hot_keys, missed

    directory = JobDirectory(load_settings(home=home).home, app)
    record = directory.record()
    if record is None:
        raise no_job(directory)
    log = log_at(home)
    found = JobAccounting(log, app, record, directory.accounting)
    if by_state:
        render.table(found.state(), as_json=as_json, empty="no step has state")
        return
    rows = found.epochs().to_dicts() if by_epoch else found.totals()
    for hot in hot_keys(log, app):
        if hot.trouble:
            render.note(str(hot))
    render.accounting(rows, as_json=as_json)
    if not render.for_programs(as_json):
        for line in missed(rows):
            render.note(line)
    if any(row["in"] != sum(row[end] for end in ENDS) for row in rows):
        raise JobError(f"the accounting of job {app!r} does not add up", why="records are missing or were counted twice")
