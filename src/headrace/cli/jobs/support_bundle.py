"""`headrace support-bundle`: a job in one file, for another person."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.job_argument import JobName, job_at, log_of
from headrace.cli.places import Home


def support_bundle(
    app: JobName,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="PATH", help="The file; APP-support.zip by default.")] = None,
    home: Home = None,
) -> None:
    """Write a zip with what is needed to understand a job: its description, last run, last offsets, counts, versions and settings.

    It contains no records and no logs, and *** in place of secrets.
    """
    from dataclasses import replace

    from headrace.core.settings import load_settings
    from headrace.ops.bundle import write_bundle

    place = job_at(app, home)
    settings = replace(load_settings(home=home), home=place.path.parent.parent)
    target = output or Path(f"{place.name}-support.zip")
    names = write_bundle(target, place, settings, log_of(place))
    render.note(f"{target} is written: {', '.join(names)}")
