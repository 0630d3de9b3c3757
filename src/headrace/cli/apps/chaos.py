"""`headrace chaos`: an app's own job, killed again and again, and the outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.app_file import AppFile, app_in


def chaos(
    file: AppFile,
    minutes: Annotated[float, typer.Option("--minutes", min=0, help="How long faults are injected.")] = 5,
    faults: Annotated[
        int | None, typer.Option("--faults", min=1, help="Stop after this many faults instead, however long they take.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only faults of this kind: driver, everything, worker, pause, replaced, failpoint[:NAME]."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Repeat the faults and records of the run that named this seed.")
    ] = None,
    rate: Annotated[int, typer.Option("--rate", min=1, help="Records per second, over all streams.")] = 500,
    keep: Annotated[Path | None, typer.Option("--keep", metavar="DIR", help="Work in DIR and keep everything there.")] = None,
    as_json: render.Json = False,
) -> None:
    """Kill an app's job repeatedly while records arrive; then compare its results with a run without faults.

    A copy of the app runs, on its own log, with topics in place of other sources and sinks.

    The exit code is 1 if records were lost, duplicated or counted wrongly.
    """
    import shutil
    import tempfile
    from dataclasses import asdict
    from random import randrange

    from headrace.testing.chaos.campaign import Campaign, Chaos
    from headrace.testing.chaos.kinds import KINDS

    place = keep or Path(tempfile.mkdtemp(prefix="headrace-chaos-"))
    campaign = Campaign(
        seed if seed is not None else randrange(1_000_000),
        faults, None if faults else 60 * minutes, tuple(kinds or KINDS), rate, rows_per_epoch=max(rate, 100),
    )  # fmt: skip
    render.note(f"faults and records of seed {campaign.seed}, in {place}")
    verdict = Chaos(app_in(file, place, creates=True), file, place, campaign, render.note).run()
    render.note(str(verdict))
    render.table([{**asdict(output)} for output in verdict.outputs], as_json=as_json)
    if not verdict.whole:
        render.note(f"everything is still in {place}")
        raise typer.Exit(1)
    if keep is None:
        shutil.rmtree(place)
