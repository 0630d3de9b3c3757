"""What each reader of an epoch reads: all that came, cut into shares of about the same size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """Records of one partition of one source."""

    source: str
    partition: int
    first: int
    last: int


def balanced(ranges: list[Range], tasks: int) -> list[list[Range]]:
    """The ranges cut into so many shares of about the same number of records; always at least one share, for the beats."""
    total = sum(part.last - part.first for part in ranges)
    if not total:
        return [[]]
    tasks = min(tasks, total)
    target = -(-total // tasks)
    shares: list[list[Range]] = [[]]
    room = target
    for part in ranges:
        first = part.first
        while first < part.last:
            if not room:
                shares.append([])
                room = target
            taken = min(room, part.last - first)
            shares[-1].append(Range(part.source, part.partition, first, first + taken))
            first, room = first + taken, room - taken
    return shares
