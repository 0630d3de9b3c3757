"""The rule about slow outputs: the time that tasks take to write to a view or sink."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from headrace.ops.why.facts import JobFacts
from headrace.ops.why.finding import Finding

# An output is slow if the middle one of the last epochs took this many seconds to write to it, and this share of the epoch.
_SECONDS, _SHARE = 1.0, 0.5


def slow_sink(facts: JobFacts) -> Iterator[Finding]:
    """Writing to an output takes most of the time of an epoch."""
    for output in facts.outputs:
        writes = [write for write in facts.writes if write.output == output.name]
        if not writes:
            continue
        took, whole = median(write.seconds for write in writes), median(write.epoch_seconds for write in writes)
        if took >= _SECONDS and took >= _SHARE * whole:
            yield Finding(
                "slow sink",
                f"writing to {output.name!r} took {took:.1f} s of the {whole:.1f} s of an epoch",
                why="an epoch ends when every output has it, so all results wait for the slowest one",
                remedy=f"look at the load, the locks and the indexes of its target ({output.does})",
                step=output.name,
            )
