"""`headrace lateness`: how late the records of a stream are, and which watermark fits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import render
from headrace.cli.app_file import app_in
from headrace.cli.places import Home, complete_topic, log_at

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.ops.lateness import Study

Stream = Annotated[str, typer.Argument(metavar="STREAM", help="The stream, or the topic, by its name.", autocompletion=complete_topic)]


def lateness(
    stream: Stream,
    app: Annotated[
        str | None,
        typer.Option("--app", metavar="FILE", help="The Python file whose app declares the stream: its time, watermark, source."),
    ] = None,
    newest: Annotated[
        int, typer.Option("--newest", min=1, help="How many of the newest records of each partition to look at.")
    ] = 1_000_000,
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """Show how late the records of a stream are, what share each bound would have made late, and which watermark fits."""
    study = _of_app(app, stream, newest) if app else _of_topic(stream, newest, home)
    distribution, losses = list(study.distribution()), list(study.losses())
    if render.for_programs(as_json):
        for kind, rows in (("distribution", distribution), ("bound", losses), ("advice", [{"advice": study.advice()}])):
            for row in rows:
                render.record({"kind": kind, **row})
        return
    render.table({name: _brief(value) if isinstance(value, timedelta) else value for name, value in row.items()} for row in distribution)
    render.table(losses)
    render.words(study.advice())


def _brief(length: timedelta) -> str:
    """A duration in few characters, for a column of them."""
    seconds = length.total_seconds()
    for unit, size in (("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1000:.3g} ms" if seconds else "0"


def _of_topic(name: str, newest: int, home: Path | None) -> Study:
    from headrace.connectors.log.input import LogInput
    from headrace.core.durations import microseconds
    from headrace.core.errors import PlanError
    from headrace.engine.planning.observed_lateness import Times
    from headrace.ops.lateness import studied
    from headrace.plan.source_time import event_time
    from headrace.plan.watermarks import DEFAULT_AHEAD

    log = log_at(home)
    topic = log.topic(name)
    if topic.time is None:
        raise PlanError(f"topic {name!r} has no event time", hint="name the app whose stream says which column has it: --app app.py")
    limit = log.clock.now() + microseconds(DEFAULT_AHEAD)
    time = event_time(topic.time, name, topic.columns, None)
    return studied(Times(LogInput(log.path, name, (topic.time,), topic.time), time, limit), newest)


def _of_app(file: str, name: str, newest: int) -> Study:
    from headrace.core.durations import microseconds
    from headrace.core.errors import PlanError
    from headrace.engine.planning.observed_lateness import Times
    from headrace.ops.lateness import studied
    from headrace.spark.timed_inputs import times_of_input

    app = app_in(file)
    sources = {source.name: source for source in app.plan().sources}
    source = sources.get(name)
    if source is None or source.time is None or source.watermark is None:
        timed = ", ".join(source.name for source in sources.values() if source.time) or "none"
        raise PlanError(f"app {app.name!r} has no stream {name!r} with an event time", hint=f"such streams: {timed}")
    log = app.present_log
    if log is None:
        raise PlanError(f"stream {name!r} has no records: there is no log in {app.settings.home}", hint="send some first: headrace produce")
    limit = log.clock.now() + microseconds(source.watermark.max_ahead)
    return studied(Times(times_of_input(source, app.name, log.path), source.time, limit), newest, source.watermark)
