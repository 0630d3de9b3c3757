"""`headrace why`: the reasons why a job has no output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import render
from headrace.cli.job_argument import JobName, job_at, log_of
from headrace.cli.places import Home

if TYPE_CHECKING:
    from headrace.jobs.directory import JobDirectory


def why(
    app: JobName,
    view: Annotated[str | None, typer.Argument(metavar="[VIEW]", help="The view or sink to ask about; all by default.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="A key that the view should have; its parts separated by /.")] = None,
    row: Annotated[
        str | None,
        typer.Option("--row", metavar="KEY", help="Show which records made the row with this key; APP must be a file, and VIEW be given."),
    ] = None,
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """Why a job has no output: what is wrong, since when, and the remedy, from measured facts. Exit code 1 if anything is wrong.

    With --row: which records made a row, and what each step made of them. Exit code 1 if these records do not make that very row.
    """
    from headrace.core.clock import SystemClock
    from headrace.ops.why.facts import facts_of
    from headrace.ops.why.rules import findings

    place = job_at(app, home)
    if row is not None:
        _tell_row(app, place, view, row, as_json=as_json)
        return
    found = findings(facts_of(place, log_of(place), SystemClock().now(), view=view, key=key))
    for finding in found:
        if render.for_programs(as_json):
            render.record(finding.to_json())
        else:
            render.words(str(finding))
    if any(finding.wrong for finding in found):
        raise typer.Exit(1)
    render.note(f"nothing is wrong with job {place.name!r}")


def _tell_row(app: str, place: JobDirectory, view: str | None, key: str, *, as_json: bool) -> None:
    """Tell the records of a key, or of the first parts of one."""
    from dataclasses import asdict

    from headrace.cli.app_file import app_in
    from headrace.core.errors import PlanError
    from headrace.core.nearest import choices
    from headrace.ops.why.keys import parsed_key
    from headrace.ops.why.row import story_of

    log = log_of(place)
    if view is None or log is None or not app.partition(":")[0].endswith(".py"):
        raise PlanError("--row needs the file of the app and a view", hint="headrace why app.py VIEW --row KEY")
    plan = app_in(app).plan()
    output = next((output for output in plan.outputs if output.name == view), None)
    if output is None:
        raise PlanError(f"there is no view {view!r}", hint=choices(view, [output.name for output in plan.outputs], "views"))
    story = story_of(plan, view, parsed_key(view, output.folds_by, output.node.columns, key), place, log)
    if render.for_programs(as_json):
        render.record({"view": view, "rows": story.rows, "replayed": story.replayed, "exact": story.exact, "begins": story.begins})
        for one in story.records:
            render.record(asdict(one))
    else:
        render.words(str(story))
    if not story.exact:
        raise typer.Exit(1)
