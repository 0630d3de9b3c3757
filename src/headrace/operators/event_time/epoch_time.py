"""The time of an epoch: the same in Spark, in tests and on replay."""

from __future__ import annotations

from dataclasses import dataclass

# Before any event, and after all of them: ordinary numbers, so that comparisons need no special case.
BEGINNING = -(2**62)
END = 2**62
# The years 2 to 9997: the bounds of a window around a moment in them are in the years of Python's calendar.
EARLIEST, LATEST = -62_104_060_800_000_000, 253_339_228_800_000_000


@dataclass(frozen=True)
class EpochTime:
    """The number of an epoch and its watermark before and after it, in microseconds since 1970.

    The records of the epoch are judged by the watermark before it; then time moves to the one after it and windows fire. `idle` says that
    time moved because the stream was silent, not because of an event. `clock` is the wall clock when the epoch was planned, `clock_before`
    that of the previous epoch; they never go back.
    """

    epoch: int
    before: int
    after: int
    idle: bool = False
    clock_before: int = BEGINNING
    clock: int = BEGINNING
