"""`headrace prepare`: quicker starts from now on."""

from __future__ import annotations

from headrace.cli import render


def prepare() -> None:
    """Make Spark start in half the time: run it once and keep the classes that it loads, about 200 MB next to this Python."""
    from headrace.ops.prepare import prepare as run
    from headrace.spark.workers.quick_start import ARCHIVE

    with render.console(stderr=True).status("running Spark once, to keep what it loads (about a minute) ..."):
        size = run(ARCHIVE)
    render.note(f"Spark starts quicker from now on, with {ARCHIVE} ({size / (1 << 20):.0f} MiB)")
