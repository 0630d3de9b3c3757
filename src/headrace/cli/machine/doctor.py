"""`headrace doctor`: is this machine ready, and if not, what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import render

STYLES = {"ok": "green", "warn": "yellow", "red": "bold red"}


def doctor(
    spark: Annotated[bool, typer.Option(help="Start a Spark session, too.")] = True,
    as_json: render.Json = False,
) -> None:
    """Check Python, Java, ports, memory, disk and Spark; exit code 1 if anything is red."""
    from headrace.ops.doctor import examine

    with render.console(stderr=True).status("looking at this machine ..."):
        checks = list(examine(spark=spark))
    render.table((check.row() for check in checks), as_json=as_json, styles=STYLES)
    if any(check.status == "red" for check in checks):
        raise typer.Exit(1)
