"""`headrace repair`: a job whose checkpoint was damaged."""

from __future__ import annotations

from headrace.cli import render
from headrace.cli.app_file import AppFile, app_in


def repair(file: AppFile) -> None:
    """Repair a checkpoint with torn or missing files, by asking the job's views and sinks which epochs they have.

    If that would lose or repeat records, nothing is changed, and the reason is printed.
    """
    from headrace.jobs.repair import repair as mend

    app = app_in(file)
    steps = mend(app.plan(), app.settings)
    for step in steps or ["the checkpoint is complete: nothing to repair"]:
        render.note(step)
