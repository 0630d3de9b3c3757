"""`headrace query`: SQL over the views of a home, without a server."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.places import Home, log_at


def query(
    text: Annotated[str, typer.Argument(metavar="SELECT", help="One SELECT over views, in DuckDB's SQL.")],
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """Answer a SELECT over views, as of the last committed epoch of their jobs."""
    from headrace.core.errors import PlanError
    from headrace.core.settings import load_settings
    from headrace.serve.http.problems import Problem
    from headrace.serve.views.follower import Follower
    from headrace.serve.views.sql_limits import SqlLimits
    from headrace.serve.views.sql_processes import SqlProcesses

    follower = Follower(log_at(home), load_settings(home=home).home, None)
    follower.step()
    queries = SqlProcesses(SqlLimits())
    try:
        result = queries.run(text, follower.snapshot)
    except Problem as problem:
        raise PlanError(problem.fact, hint=problem.hint) from problem
    finally:
        queries.close()
    render.table(result.table.to_pylist(), as_json=as_json, empty="no rows")
    if not result.complete:
        render.note(f"only the first {result.table.num_rows:,} rows are shown")
