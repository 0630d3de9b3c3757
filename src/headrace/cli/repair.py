"""`headrace repair`: a job whose checkpoint was damaged."""

from __future__ import annotations

from headrace.cli import render
from headrace.cli.apps import AppFile, app_in


def repair(file: AppFile) -> None:
    """Mend a job's checkpoint where files of it are torn or missing, by what its views and sinks say that they have.

    Where that would lose records or bring some twice, nothing is changed, and the reason is told.
    """
    from headrace.jobs.repair import repair as mend

    app = app_in(file)
    steps = mend(app.plan(), app.settings, app.log)
    for step in steps or ["the checkpoint is whole: nothing to mend"]:
        render.note(step)
