"""`headrace compact`: apply retention and compaction now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import render
from headrace.cli.places import Home, complete_topic, log_at

if TYPE_CHECKING:
    from headrace.log.upkeep.maintenance import PartitionReport


def compact(
    topic: Annotated[str | None, typer.Argument(metavar="TOPIC", help="Only this topic.", autocompletion=complete_topic)] = None,
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """Apply retention, and keep only the latest record of each key in compacted topics.

    The log also does this by itself whenever a segment is full.
    """
    reports = log_at(home).maintain(topic, force=True)
    render.table((_row(report) for report in reports if topic or not report.topic.startswith("__")), as_json=as_json, empty="no topics yet")
    if any(report.error for report in reports):
        raise typer.Exit(1)


def _row(report: PartitionReport) -> dict[str, Any]:
    removed, compacted = report.removed, report.compacted
    return {
        "topic": report.topic,
        "partition": report.partition,
        "segments_removed": removed.segments if removed else 0,
        "records_compacted": compacted.records_removed if compacted else 0,
        "bytes_freed": (removed.bytes if removed else 0) + (compacted.bytes_before - compacted.bytes_after if compacted else 0),
        "held_by": report.held_by,
        "error": report.error.fact if report.error else None,
    }
