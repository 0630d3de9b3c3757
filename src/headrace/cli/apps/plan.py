"""`headrace plan`: what a changed app means for its job."""

from __future__ import annotations

import typer

from headrace.cli import render
from headrace.cli.app_file import AppFile, app_in

_CODES = {"same": 0, "new": 2, "changed": 2, "refused": 3}


def plan(file: AppFile, as_json: render.Json = False) -> None:
    """Show what `headrace run` would do with a changed app: for each step, view and sink keep, new, drop or rebuild, and why.

    Nothing is changed. Exit code 0: nothing to accept, 2: changes, 3: refused, because something would have to be rebuilt.
    """
    from headrace.jobs.evolution.review import review

    app = app_in(file)
    found = review(app.plan(), app.settings)
    if render.for_programs(as_json):
        render.record(found.to_json())
    else:
        render.words(str(found))
    raise typer.Exit(_CODES[found.status])
