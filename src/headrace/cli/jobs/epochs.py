"""`headrace epochs`: how far a job and each of its views and sinks are."""

from __future__ import annotations

from headrace.cli import render
from headrace.cli.app_file import AppFile, app_in


def epochs(file: AppFile, as_json: render.Json = False) -> None:
    """Show the last epoch of an app's job, and the last that each view and sink received, as the target itself says."""
    app = app_in(file)
    found = app.epochs()
    render.note(f"job {app.name!r} is at epoch {found.job:,}")
    render.table(found.rows(), as_json=as_json)
