"""The rule about late records: how many, and by how much event time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from headrace.core.columns.schema import schema
from headrace.core.durations import spelled
from headrace.log.errors import UnknownTopic
from headrace.log.tail import Tail, tail
from headrace.ops.why.facts import JobFacts
from headrace.ops.why.finding import Finding
from headrace.plan.side_streams import late_names
from headrace.plan.topics import late_topic

# A step with a larger share of late records has a watermark that does not fit.
_MANY = 0.01
# The number of late records of each partition that are examined.
_NEWEST = 1_000


def late(facts: JobFacts) -> Iterator[Finding]:
    """Records arrived after their windows had closed."""
    for row in facts.counts():
        if not row["late"] or row["late"] < _MANY * row["in"]:
            continue
        share = "every record" if row["late"] == row["in"] else f"{row['late']:,} of {row['in']:,} records"
        by = _by_how_much(facts, row["step"])
        amount = f", by {spelled(by)} at most" if by is not None else ""
        reason = f"; the first: {row['late_reason']}" if row["late_reason"] else ""
        streams = [stream.name for stream in facts.streams if stream.watermark is not None]
        asked, kept = ", ".join(f"headrace lateness {name}" for name in streams), ", ".join(late_topic(name) for name in streams)
        yield Finding(
            "late",
            f"{share} of {row['step']!r} came late{amount}{reason}",
            why="a late record is in no result that was emitted before",
            remedy=f"see which watermark fits: {asked}; late records are kept in {kept}",
            step=row["step"],
        )


def _by_how_much(facts: JobFacts, step: str) -> timedelta | None:
    """How far the watermark was past the end of a missed window, at most, for the newest late records of a step."""
    found = []
    for stream in facts.streams:
        of_step, _, watermark, _, end = late_names(schema(stream.columns).names)
        try:
            assert facts.log is not None
            tables = list(tail(facts.log, late_topic(stream.name), Tail(last=_NEWEST, columns=(of_step, watermark, end))))
        except UnknownTopic:
            continue
        rows = [row for table in tables for row in table.to_pylist() if row[of_step] == step]
        found += [row[watermark] - row[end] for row in rows if row[watermark] is not None and row[end] is not None]
    return max(found, default=None)
