"""`headrace status`: the facts of a job."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headrace.cli import render
from headrace.cli.job_argument import complete_job, job_at, log_of
from headrace.cli.places import Home

_FACTS = ("state", "since", "epoch", "epoch_seconds", "in_rate", "out_rate", "lag", "lag_seconds", "watermark", "held_by", "late")
_STEP = ("name", "kind", "in", "out", "late", "filtered", "duplicate", "dead_letter", "state_rows", "state_bytes")


def status(
    app: Annotated[
        str | None,
        typer.Argument(metavar="[APP]", help="The name of the app, or its Python file; every job by default.", autocompletion=complete_job),
    ] = None,
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """The facts of a job: state, epoch, rates, lag, watermark, and the fate of the records of each step."""
    from headrace.core.settings import load_settings
    from headrace.jobs.directory import JobDirectory
    from headrace.serve.overview import told

    if app is not None:
        places = [job_at(app, home)]
    else:
        folder = load_settings(home=home).home / "jobs"
        found = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        places = [JobDirectory(folder.parent, name) for name in found]
    for place in places:
        facts = told(place, log_of(place))
        if render.for_programs(as_json):
            render.record(facts)
        else:
            _show(facts)
    if not places:
        render.note("no jobs in this home")


def _show(facts: dict[str, Any]) -> None:
    shown = {"job": facts["name"], **{name: facts.get(name) for name in (*_FACTS, "dead_letter", "last_error")}}
    if (chosen := facts["epoch_rows"]) is not None:
        shown["epoch_rows"] = f"{chosen['rows']:,} at most since epoch {chosen['epoch']}: {chosen['why']}"
    for name, value in shown.items():
        if value is not None:
            render.words(f"{name.replace('_', ' '):<14} {_legible(value)}")
    render.table(({name: step[name] for name in _STEP} for step in facts["steps"]), empty="no step has run yet")


def _legible(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
