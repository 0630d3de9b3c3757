"""The job of a command: by the name of its app, or by the Python file that declares it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headrace.core.errors import JobError
    from headrace.jobs.directory import JobDirectory
    from headrace.log import Log


def complete_job(incomplete: str) -> list[str]:
    """Names of jobs for the shell."""
    from headrace.core.settings import load_settings

    jobs = load_settings().home / "jobs"
    return sorted(path.name for path in jobs.iterdir() if path.name.startswith(incomplete)) if jobs.is_dir() else []


JobName = Annotated[
    str, typer.Argument(metavar="APP", help="The name of the app, or the Python file that declares it.", autocompletion=complete_job)
]


def job_at(app: str, home: Path | None) -> JobDirectory:
    """The directory of a job, which may not exist yet if a file names it; the name of a job that does not exist is an error."""
    from headrace.cli.app_file import app_in
    from headrace.core.settings import load_settings
    from headrace.jobs.directory import JobDirectory

    if app.partition(":")[0].endswith(".py"):
        declared = app_in(app)
        return JobDirectory(load_settings(home=home).home if home is not None else declared.settings.home, declared.name)
    place = JobDirectory(load_settings(home=home).home, app)
    if not place.path.is_dir():
        raise no_job(place)
    return place


def no_job(place: JobDirectory) -> JobError:
    """The job that a name stands for is not in this home."""
    from headrace.core.errors import JobError
    from headrace.core.nearest import choices

    known = sorted(path.name for path in place.path.parent.glob("*") if path.is_dir())
    hint = f"{choices(place.name, known, 'jobs there')}; run its app first (headrace run app.py), or name another --home"
    return JobError(f"there is no job {place.name!r} in {place.path.parent}", hint=hint)


def log_of(place: JobDirectory) -> Log | None:
    """The log of the home of a job; None if there is none yet."""
    from headrace.cli.places import log_at

    home = place.path.parent.parent
    return log_at(home) if (home / "log").is_dir() else None
