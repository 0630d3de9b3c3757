"""`headrace explain`: what an app means, step by step."""

from __future__ import annotations

from headrace.cli import render
from headrace.cli.apps import AppFile, app_in


def explain(file: AppFile, as_json: render.Json = False) -> None:
    """What each step of an app does, which lane runs it and why, what it remembers and for how long."""
    from dataclasses import asdict

    explanation = app_in(file).explain()
    if render.for_programs(as_json):
        for words in explanation.steps:
            render.record({**asdict(words), "shards": explanation.shards})
        return
    render.words(str(explanation))
