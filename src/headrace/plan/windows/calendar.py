"""Windows by the calendar and the clocks of a place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.plan.nodes import StateSummary
from headrace.plan.windows.emit import Emit
from headrace.plan.windows.kinds import Window

_LENGTH = re.compile(r"\s*([1-9][0-9]?)\s*(hour|day|week|month|quarter|year)s?\s*", re.ASCII | re.IGNORECASE)
_LONGEST = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1), "month": timedelta(days=28)}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True)
class Calendar(Window):
    """Hours, days, weeks (from Monday) or months as the clocks of a zone show them, each beginning `offset` after its unit.

    A day has 23 hours when summer time begins, and 25 when it ends.
    """

    unit: str
    count: int
    zone: str
    offset: timedelta = timedelta(0)

    @classmethod
    def of(cls, length: str, zone: str, offset: timedelta = timedelta(0)) -> Calendar:
        """Parse the words of a length: "1 hour", "1 day", "1 week", "1 month", "3 months", "1 year"."""
        found = _LENGTH.fullmatch(length) if isinstance(length, str) else None
        if found is None:
            raise PlanError(f"calendar({length!r}) is not a unit of a calendar", hint='"1 hour", "1 day", "1 week", "1 month" or "1 year"')
        count, unit = int(found[1]), found[2].lower()
        return cls("month", count * _MONTHS[unit], zone, offset) if unit in _MONTHS else cls(unit, count, zone, offset)

    def __post_init__(self) -> None:
        if self.unit != "month" and self.count != 1:
            raise PlanError(
                f"calendar({f'{self.count} {self.unit}s'!r}): nothing says where the first begins",
                hint=f'take 1 {self.unit}, or windows of a fixed size: hr.tumbling("{self.count} {self.unit}s", offset=...)',
            )
        if self.unit == "month" and 12 % self.count and self.count % 12:
            raise PlanError(f"calendar of {self.count} months: a year is no multiple of it", hint="take 1, 2, 3, 4, 6 or 12 months")
        if not timedelta(0) <= self.offset < _LONGEST[self.unit]:
            longest = spelled(_LONGEST[self.unit])
            raise PlanError(f"offset {spelled(self.offset)} is not inside a {self.unit}", hint=f"zero or more, and less than {longest}")
        if self.offset % timedelta(seconds=1):
            raise PlanError(f"offset {spelled(self.offset)}: clocks are changed at whole seconds", hint="give whole seconds")
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, TypeError) as error:
            raise PlanError(f"there is no time zone {self.zone!r}", hint='name one of the IANA list: zone="Europe/Berlin"') from error

    @property
    def reach(self) -> timedelta:
        return timedelta(0)

    def state_summary(self, kept: timedelta, emit: Emit) -> StateSummary:
        length = f"1 {self.unit}" if self.count == 1 else self._length
        more = f" and {spelled(kept)}" if kept else ""
        return StateSummary(f"a row per key and {self._length}", f"{length}{more} behind the watermark")

    @property
    def _length(self) -> str:
        return self.unit if self.count == 1 else f"{self.count} {self.unit}s"

    def __str__(self) -> str:
        offset = f", offset {spelled(self.offset)}" if self.offset else ""
        return f"calendar {self._length} in {self.zone}{offset}"
