"""`headrace run`: the job of an app."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.apps import AppFile, app_in


class Until(StrEnum):
    """When a run ends by itself."""

    CAUGHT_UP = "caught-up"
    END = "end"


def run(
    file: AppFile,
    until: Annotated[
        Until | None,
        typer.Option(
            "--until", help="caught-up: stop when all that is there is taken in; end: close every window, too. By default it runs on."
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows-per-epoch", min=1, help="Take in at most this many records an epoch; 4 million by default.")
    ] = None,
    place: Annotated[
        Path | None,
        typer.Option(
            "--apart",
            metavar="DIR",
            help="Run a copy that touches nothing of the original: on a log in DIR, with topics there for sources and sinks elsewhere.",
        ),
    ] = None,
    as_json: render.Json = False,
) -> None:
    """Run an app's job, or go on with it where it stopped. Ctrl-C or SIGTERM stops it; nothing is lost or done twice."""
    report = app_in(file, place).run(until=until.value if until else None, rows_per_epoch=rows)
    render.note(str(report))
    render.table(report.accounting, as_json=as_json, empty="no records moved yet")
