"""`headrace failpoints`: the places where a job may be killed on purpose."""

from __future__ import annotations

from headrace.cli import render


def failpoints(as_json: render.Json = False) -> None:
    """List every failpoint, with what a process has done when it gets there. HEADRACE_FAILPOINTS="NAME=kill@3" kills it there."""
    from headrace.testing.faults import FAILPOINTS

    render.table([{"failpoint": name, "when": sentence} for name, sentence in FAILPOINTS.items()], as_json=as_json)
