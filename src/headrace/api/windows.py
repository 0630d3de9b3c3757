"""The words for windows and watermarks in the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.core.durations import Duration, duration
from headrace.core.where import caller, says_where
from headrace.plan.building.functions import refuse_arity
from headrace.plan.watermarks import DEFAULT_AHEAD, Bounded, LossBudget
from headrace.plan.windows.calendar import Calendar
from headrace.plan.windows.kinds import Count, Custom, Global, Hopping, Session, Sliding
from headrace.plan.windows.processing_time import ProcessingTime


@says_where
def tumbling(size: Duration, *, offset: Duration = "0s") -> Hopping:
    """Windows of one size that follow each other without a gap, counted from 1970 in UTC plus `offset`.

    >>> str(tumbling("1 minute"))
    'tumbling 1 minute'
    """
    return Hopping(duration(size), duration(size), duration(offset))


@says_where
def hopping(size: Duration, *, every: Duration, offset: Duration = "0s") -> Hopping:
    """Windows of one size that begin at every multiple of `every`, and overlap.

    >>> str(hopping("24h", every="1 minute"))
    'hopping 1 day every 1 minute'
    """
    return Hopping(duration(size), duration(every), duration(offset))


@says_where
def session(gap: Duration) -> Session:
    """Windows of activity of one key, which end after `gap` without a record.

    >>> str(session("30 minutes"))
    'session with gap 30 minutes'
    """
    return Session(duration(gap))


@says_where
def calendar(length: str, *, zone: str, offset: Duration = "0s") -> Calendar:
    """Hours, days, weeks (from Monday), months or years of a time zone, each shifted by `offset`.

    >>> str(calendar("1 day", zone="Europe/Berlin", offset="6 hours"))
    'calendar day in Europe/Berlin, offset 6 hours'
    """
    return Calendar.of(length, zone, duration(offset))


@says_where
def global_() -> Global:
    """One window for all time, which ends with the input; `emit` says what it emits before that.

    >>> str(global_())
    'global'
    """
    return Global()


@says_where
def custom(function: Callable[[Any], tuple[Any, Any]]) -> Custom:
    """Windows by a function from event times to the starts and ends of their windows, arrays of numpy's `datetime64[us]` in UTC.

    A window includes its start and not its end, and the function returns the same one for every time in it. A record whose time is not in
    the window that the function returns is a dead letter.

    >>> def quarter_hours(times):
    ...     start = times.astype("datetime64[m]") // 15 * 15
    ...     return start, start + 15
    >>> str(custom(quarter_hours))
    'windows of quarter_hours'
    """
    made = Custom(function)
    refuse_arity(function, ("times",), "custom(...)", caller())
    return made


@says_where
def sliding(length: Duration) -> Sliding:
    """For each event, the events of its key in the `length` before it: `window_end` is its time, `window_start` is `length` before.

    Both ends are included, as in SQL's `range between interval ... preceding and current row`; events of one time share a result.

    >>> str(sliding("10 minutes"))
    'sliding 10 minutes'
    """
    return Sliding(duration(length))


@says_where
def count_window(records: int, *, every: int | None = None) -> Count:
    """Windows of a fixed number of records of a key, in the order of event time, numbered by `window_number`; with `every` they overlap.

    A record is counted when the watermark has passed it. Windows that are not full are emitted when the input ends.

    >>> str(count_window(100, every=10))
    '100 records every 10'
    """
    return Count(records, records if every is None else every)


@says_where
def processing_time(window: Duration | Hopping) -> ProcessingTime:
    """Windows by the wall clock at which the job reads records: of one size, or `hr.hopping(...)`.

    A replay reads records at another time, so its results differ, unlike with event time. An epoch that is repeated after a crash gives the
    same results.

    >>> str(processing_time("1 minute"))
    'processing time, tumbling 1 minute'
    """
    return ProcessingTime(window if isinstance(window, Hopping) else tumbling(window))


@says_where
def bounded(delay: Duration, *, idle: Duration | None = None, max_ahead: Duration = DEFAULT_AHEAD) -> Bounded:
    """A watermark that stays `delay` behind the latest record of a partition.

    A partition without records for `idle`, by the wall clock, no longer holds the watermark back. A record more than `max_ahead` in the
    future, by the wall clock, is a dead letter.

    >>> str(bounded("30 seconds", idle="1 minute"))
    'bounded 30 seconds, idle after 1 minute'
    """
    return Bounded(duration(delay), duration(idle) if idle is not None else None, duration(max_ahead))


@says_where
def perfect(*, idle: Duration | None = None, max_ahead: Duration = DEFAULT_AHEAD) -> Bounded:
    """A watermark for partitions in the order of event time: nothing in them is late. `idle` and `max_ahead` are as in `bounded`.

    >>> str(perfect(idle="1 minute"))
    'bounded 0 seconds, idle after 1 minute'
    """
    return bounded("0s", idle=idle, max_ahead=max_ahead)


@says_where
def loss_budget(share: float, *, max: Duration, idle: Duration | None = None, max_ahead: Duration = DEFAULT_AHEAD) -> LossBudget:  # noqa: A002
    """A watermark that learns its bound: at most a `share` of the records of a partition may be late.

    The bound is the smallest that would have kept the share, and never above `max`, with which a stream begins. What was learned is part of
    the job's offset, so a repeated epoch chooses the same. `idle` and `max_ahead` are as in `bounded`.

    >>> str(loss_budget(0.001, max="5 minutes", idle="1 minute"))
    'loss budget 0.001, at most 5 minutes, idle after 1 minute'
    """
    return LossBudget(share, duration(max), duration(idle) if idle is not None else None, duration(max_ahead))
