"""The words for windows and watermarks."""

from __future__ import annotations

from headrace.core.durations import Duration, duration
from headrace.plan.watermarks import DEFAULT_AHEAD, Bounded
from headrace.plan.windows import Hopping, Session


def tumbling(size: Duration, *, offset: Duration = "0s") -> Hopping:
    """Windows of one size that follow each other without a gap.

    >>> str(tumbling("1 minute"))
    'tumbling 1 minute'
    """
    return Hopping(duration(size), duration(size), duration(offset))


def hopping(size: Duration, *, every: Duration, offset: Duration = "0s") -> Hopping:
    """Windows of one size that begin every so often and overlap.

    >>> str(hopping("24h", every="1 minute"))
    'hopping 1 day every 1 minute'
    """
    return Hopping(duration(size), duration(every), duration(offset))


def session(gap: Duration) -> Session:
    """Stretches of activity of one key that end after `gap` without a record.

    >>> str(session("30 minutes"))
    'session with gap 30 minutes'
    """
    return Session(duration(gap))


def bounded(delay: Duration, *, idle: Duration | None = None, max_ahead: Duration = DEFAULT_AHEAD) -> Bounded:
    """Records come at most `delay` behind the latest one of their partition.

    >>> str(bounded("30 seconds", idle="1 minute"))
    'bounded 30 seconds, idle after 1 minute'
    """
    return Bounded(duration(delay), duration(idle) if idle is not None else None, duration(max_ahead))


def perfect(*, idle: Duration | None = None, max_ahead: Duration = DEFAULT_AHEAD) -> Bounded:
    """Each partition is in the order of event time: nothing in it is late."""
    return bounded("0s", idle=idle, max_ahead=max_ahead)
