"""Shares of readers: the records of an epoch, divided into shares of about the same size."""

from __future__ import annotations

from headrace.engine.planning.epoch_plan import Range


def balanced(ranges: list[Range], tasks: int) -> list[list[Range]]:
    """The ranges divided into shares of about the same number of records; always at least one share, for the beats."""
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
