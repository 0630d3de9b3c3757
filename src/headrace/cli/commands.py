"""The `headrace` command line.

A command is one file in a folder below this one and one line in `GROUPS`:

- The file has a function with typer's annotations (or, for a group such as `topics`, a `typer.Typer()` called `app`). Its docstring
  is the help text. It parses, makes one call into the package, and renders; logic lives elsewhere.
- At the top it imports only the standard library, typer and `headrace.cli.render`. Everything else is imported inside the function:
  `headrace --version` and shell completion load every command file and must stay quick. A test holds this.
- Rows go through `render.table` (or `render.record`, one at a time, when they never end): a table on a terminal, NDJSON in a pipe and
  with `--json`, for which `render.Json` is the type of the parameter. Remarks go through `render.note`, to stderr.
- What goes wrong is raised as a `HeadraceError`; it is printed as fact, why and hint, and the exit code is 1. A command that ran well
  and found something bad raises `typer.Exit(1)`. Exit code 2 means that the command line was not understood.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated

import typer

import headrace
from headrace.cli import demo, places, render
from headrace.cli.apps import backtest, chaos, explain, lateness, match, plan
from headrace.cli.jobs import accounting, epochs, jobs, logs, repair, reset, run, status, stop, support_bundle, systemd, top, why
from headrace.cli.machine import doctor, failpoints, prepare, up
from headrace.cli.serving import query, serve
from headrace.cli.topics import compact, groups, produce, tail, topics
from headrace.core.errors import HeadraceError

# In the help, each group has a heading of its own.
GROUPS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Begin": {
        "demo": demo.app,
        "doctor": doctor.doctor,
        "prepare": prepare.prepare,
        "up": up.up,
        "down": up.down,
    },
    "Look at an app": {
        "explain": explain.explain,
        "match": match.match,
        "plan": plan.plan,
        "backtest": backtest.backtest,
        "chaos": chaos.chaos,
        "failpoints": failpoints.failpoints,
    },
    "Run its job": {
        "run": run.run,
        "stop": stop.stop,
        "reset": reset.reset,
        "repair": repair.repair,
        "systemd": systemd.systemd,
    },
    "Watch jobs": {
        "jobs": jobs.jobs,
        "status": status.status,
        "top": top.top,
        "why": why.why,
        "accounting": accounting.accounting,
        "epochs": epochs.epochs,
        "logs": logs.logs,
        "support-bundle": support_bundle.support_bundle,
    },
    "Read results": {
        "query": query.query,
        "serve": serve.serve,
    },
    "Topics of the log": {
        "topics": topics.app,
        "produce": produce.produce,
        "tail": tail.tail,
        "lateness": lateness.lateness,
        "groups": groups.app,
        "compact": compact.compact,
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}

app = typer.Typer(
    name="headrace",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks print local variables
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _heading, _commands in GROUPS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, no_args_is_help=True, rich_help_panel=_heading)
        else:
            app.command(_name, rich_help_panel=_heading)(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headrace {headrace.__version__}")
        raise typer.Exit


@app.callback()
def _headrace(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Streams and tables in Python on Apache Spark: in event time, exactly once, served live."""


@cache
def commands() -> Callable[..., None]:
    """The commands as typer calls them; otherwise it would read all of their signatures again for each command line."""
    return typer.main.get_command(app)


def execute(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code: 0 done, 1 failed, 2 not understood, 130 interrupted."""
    try:
        with places.opened:
            commands()(args=list(arguments), prog_name="headrace")
    except HeadraceError as error:
        if "--debug" in arguments:
            raise
        render.error(error)
        return 1
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
