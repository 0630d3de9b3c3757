"""`headrace match`: the patterns of an app, and their automata."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.app_file import AppFile, app_in


def match(
    file: AppFile,
    explain: Annotated[bool, typer.Option("--explain", help="Draw the automaton: its places, and what may follow each.")] = False,
    as_json: render.Json = False,
) -> None:
    """The patterns that an app looks for, and how each is evaluated. Nothing is created."""
    from dataclasses import asdict

    from headrace.operators.patterns.drawing import drawings_of

    app = app_in(file)
    drawings = drawings_of(app.plan().nodes)
    if not drawings:
        hint = "find one with stream.match(...), and give it to app.sink or app.view"
        render.note(f"no pattern feeds a view or sink of app {app.name!r}: {hint}")
    elif not explain:
        render.table([{"step": one.step, "pattern": one.pattern, "evaluated": one.evaluated} for one in drawings], as_json=as_json)
    elif render.for_programs(as_json):
        for one in drawings:
            for place in one.places:
                render.record(asdict(place))
    else:
        render.words("\n".join(str(one) for one in drawings))
