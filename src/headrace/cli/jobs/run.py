"""`headrace run`: the job of an app."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import render
from headrace.cli.app_file import AppFile, app_in

if TYPE_CHECKING:
    from headrace.app import App


class Until(StrEnum):
    """The condition on which a run ends by itself."""

    CAUGHT_UP = "caught-up"
    FLUSHED = "flushed"
    END = "end"


def run(
    file: AppFile,
    until: Annotated[
        Until | None,
        typer.Option(
            "--until",
            help="caught-up: stop after the records present at start; flushed: also close every open window; end: the input is complete "
            "forever. By default the run does not end.",
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows-per-epoch", min=1, help="The maximum number of records per epoch; 4 million by default.")
    ] = None,
    place: Annotated[
        Path | None,
        typer.Option(
            "--apart",
            metavar="DIR",
            help="Run a copy that does not touch the original: on a log in DIR, with topics there in place of other sources and sinks.",
        ),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Continue with the changed app, as headrace plan shows; a change that needs a rebuild is refused."),
    ] = False,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the views of the home over HTTP while the job runs.")] = False,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port to serve on.")] = 7070,
    metrics: Annotated[
        int | None, typer.Option("--metrics", metavar="PORT", min=1, max=65535, help="Serve the job's metrics to Prometheus on this port.")
    ] = None,
    as_json: render.Json = False,
) -> None:
    """Run an app's job, or continue it where it stopped. Ctrl-C or SIGTERM stops it after the current epoch, a second one at once.

    No record is lost or processed twice.
    """
    from headrace.jobs.stopping import signals_heard

    with signals_heard():
        app = app_in(file, place)
        with (
            _served(app, port) if serve else nullcontext(),
            _measured(app, metrics) if metrics else nullcontext(),
            _exported(app) if app.settings.otel else nullcontext(),
        ):
            report = app.run(until=until.value if until else None, rows_per_epoch=rows, as_json=as_json, accept=accept)
        render.note(render.to_json(report.facts()) if as_json else str(report))
        render.accounting(report.accounting, as_json=as_json)


@contextmanager
def _served(app: App, port: int) -> Iterator[None]:
    """Serve the home of an app for as long as the block lasts."""
    from headrace.ops.alerts.channels import Channels
    from headrace.serve.server import Server, ServeSettings

    channels = Channels(app.settings.alert_webhook, app.settings.alert_mail)
    server = Server(app.settings.home, ServeSettings(port=port, channels=channels, otel=app.settings.otel))
    with server.background():
        render.note(f"serving {app.settings.home} at {server.url}/?token={server.tokens.read}")
        yield


@contextmanager
def _measured(app: App, port: int) -> Iterator[None]:
    """Serve the metrics of an app's job for as long as the block lasts."""
    from headrace.serve.http.metrics import exposition
    from headrace.serve.http.metrics_server import metrics_served
    from headrace.serve.http.tokens import tokens_in
    from headrace.serve.server import DIRECTORY

    told = _told(app)
    with metrics_served(port, tokens_in(app.settings.home / DIRECTORY), lambda: exposition(told(), {}, 0)) as address:
        render.note(f"metrics at {address}, with the read token of {app.settings.home / DIRECTORY / 'tokens.json'}")
        yield


@contextmanager
def _exported(app: App) -> Iterator[None]:
    """Send the metrics of an app's job to a collector for as long as the block lasts."""
    from headrace.serve.http.metrics import job_metrics
    from headrace.serve.otlp import exported

    told = _told(app)
    with exported(lambda: job_metrics(told())):
        yield


def _told(app: App) -> Callable[[], list[dict[str, Any]]]:
    """A function that tells the facts of an app's job; nothing before its first run."""
    from headrace.jobs.directory import JobDirectory
    from headrace.jobs.facts.description import read_description
    from headrace.serve.status import JobStatus

    place = JobDirectory(app.settings.home, app.name)
    status = JobStatus(app.log, place)

    def told() -> list[dict[str, Any]]:
        described = read_description(place.path)
        return [] if described is None else [status.told(described)]

    return told
