"""`headrace systemd`: the unit of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.app_file import AppFile, app_in


def systemd(
    file: AppFile,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="PATH", help="Write it to a file instead of stdout.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="The user that runs the job; by default systemd's own choice, root.")] = None,
) -> None:
    """Write the systemd unit that runs an app's job: started at boot, stopped cleanly, started again after a failure."""
    import sys

    from headrace.ops.unit import Unit

    app = app_in(file)
    unit = Unit(app.name, file, app.settings.home, Path(sys.executable), user)
    if output is None:
        typer.echo(str(unit), nl=False)
        return
    output.write_text(str(unit), encoding="utf-8")
    render.note(f"{output} is written; next: systemctl daemon-reload, systemctl enable --now {output.name}")
