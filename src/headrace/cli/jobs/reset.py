"""`headrace reset`: a new beginning of a job."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.app_file import AppFile, app_in


def reset(
    file: AppFile,
    sinks: Annotated[bool, typer.Option("--sinks", help="Remove the topics of the app's sinks to the log, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: render.Json = False,
) -> None:
    """Remove the state of an app's job, its views and its side topics, after a question. The next run begins at the first record.

    The topics that the app reads stay, and so do tables and topics in other systems. A running job is refused.
    """
    from headrace.jobs.directory import JobDirectory
    from headrace.jobs.reset import parts_of, remove

    app = app_in(file)
    place, log = JobDirectory(app.settings.home, app.name), app.present_log
    if not place.path.exists() and log is None:
        render.note(f"job {app.name!r} has nothing in {app.settings.home}")
        return
    with place.held():
        parts = list(parts_of(app.plan(), place, log, sinks=sinks))
        going = [part for part in parts if part.goes]
        render.table([asdict(part) for part in parts], as_json=as_json, empty=f"job {app.name!r} has nothing in {app.settings.home}")
        if not going:
            return
        if not yes:
            typer.confirm(f"remove these {len(going)} for good?", abort=True, err=True)
        remove(parts, place, log)
    render.note(f"job {app.name!r} is reset: {len(going)} removed; its next run begins at the first record")
