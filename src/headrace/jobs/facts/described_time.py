"""Watermarks and windows in the description of a job: plain values for JSON, and back.

A reader outside of the job knows from them when a window closes and when a partition counts as idle.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

from headrace.core.durations import duration, spelled
from headrace.plan.watermarks import Bounded, LossBudget
from headrace.plan.windows.calendar import Calendar
from headrace.plan.windows.kinds import Hopping, Session

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Bounded, LossBudget, Hopping, Session, Calendar)}


def plain(value: Any) -> dict[str, Any] | None:
    """A watermark or a window by kind and fields, durations as text; None for kinds whose end no event time decides.

    >>> plain(Session(timedelta(minutes=5)))
    {'kind': 'Session', 'gap': '5 minutes'}
    """
    if type(value) not in _KINDS.values():
        return None
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    return {
        "kind": type(value).__name__,
        **{name: spelled(part) if isinstance(part, timedelta) else part for name, part in found.items()},
    }


def rebuilt(content: dict[str, Any] | None) -> Any:
    """The argument of `plain`; None for None.

    >>> rebuilt({"kind": "Session", "gap": "5 minutes"}) == Session(timedelta(minutes=5))
    True
    """
    if content is None:
        return None
    kind = _KINDS[content["kind"]]
    durations = {field.name for field in fields(kind) if "timedelta" in str(field.type)}
    values = {name: part for name, part in content.items() if name != "kind"}
    return kind(**{name: duration(part) if name in durations and part is not None else part for name, part in values.items()})
