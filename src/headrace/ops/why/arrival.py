"""The rule about new input: a stream without records, or silent for a while."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from headrace.core.clock import to_datetime
from headrace.core.durations import spelled
from headrace.ops.why.facts import JobFacts
from headrace.ops.why.finding import Finding

# A stream is silent from here on.
_SILENT = timedelta(minutes=1)


def no_input(facts: JobFacts) -> Iterator[Finding]:
    """No record arrived for a while. For streams of other systems, the last epochs tell."""
    for stream in facts.streams:
        remedy = f"look at what writes it; headrace tail {stream.name} shows its records"
        end = facts.end_of(stream.name)
        reach = facts.progress.get(stream.name)
        if end is not None and not end.records:
            yield Finding("no input", f"stream {stream.name!r} has no record", None, None, remedy, stream.name)
            continue
        seen = [part.seen_at for part in reach.partitions.values()] if reach else []
        last = end.appended_at if end is not None else max(seen, default=None)
        if last is not None and timedelta(microseconds=facts.now - last) >= _SILENT:
            silent = spelled(timedelta(seconds=(facts.now - last) // 1_000_000))
            yield Finding(
                "no input",
                f"stream {stream.name!r} has had no record for {silent}",
                to_datetime(last),
                "event time moves only with records, or by idle= of the watermark",
                remedy,
                stream.name,
            )
