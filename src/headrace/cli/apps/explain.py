"""`headrace explain`: what an app means, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import render
from headrace.cli.app_file import AppFile, app_in

if TYPE_CHECKING:
    from headrace.app import App


def explain(
    file: AppFile,
    time: Annotated[
        bool,
        typer.Option(
            "--time", help="Show instead which windows sample events fall into, when each of those fires, and when an event is late."
        ),
    ] = False,
    as_json: render.Json = False,
) -> None:
    """What each step of an app does, whether Headrace or Spark evaluates it, what it remembers and for how long. Nothing is created."""
    from dataclasses import asdict

    app = app_in(file)
    if time:
        _explain_time(app, as_json=as_json)
        return
    explanation = app.explain()
    if render.for_programs(as_json):
        for words in explanation.steps:
            render.record({**asdict(words), "shards": explanation.shards})
        return
    render.words(str(explanation))


def _explain_time(app: App, *, as_json: bool) -> None:
    from dataclasses import asdict

    from headrace.ops.timing import samples

    for sample in samples(app.plan(), app.present_log):
        if render.for_programs(as_json):
            for timing in sample.timings:
                render.record({**asdict(timing), "made_up": sample.made_up})
        else:
            render.words(str(sample))
    if not render.for_programs(as_json):
        render.words("the watermark is where a record takes it once every partition that is not idle has had one as late as that")
