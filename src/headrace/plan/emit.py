"""When windows give out results, and what a pane says of those before it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.core.counts import counts
from headrace.core.durations import spelled
from headrace.core.errors import PlanError

DISCARDING, ACCUMULATING, RETRACTING = "discarding", "accumulating", "retracting"
MODES = (DISCARDING, ACCUMULATING, RETRACTING)
_NOTHING = timedelta(0)


@dataclass(frozen=True)
class Emit:
    """The panes of a window. One is given out when the watermark passes its end.

    Before that, `early`: each time the watermark has moved on by so much, and `every`: after so many records. After it, for `until`:
    one for each batch of late records, or with `late` each time the watermark has moved on by so much.

    A pane of mode `discarding` has what came since the one before it, of `accumulating` all so far, of `retracting` all so far after
    the one before it was taken back.
    """

    until: timedelta = _NOTHING
    early: timedelta | None = None
    every: int | None = None
    late: timedelta = _NOTHING
    mode: str = RETRACTING

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise PlanError(f"mode={self.mode!r} is not known", hint=f"one of {', '.join(MODES)}")
        for name, length in (("early", self.early), ("late", self.late or None), ("until", self.until or None)):
            if length is not None and length <= _NOTHING:
                raise PlanError(f"{name}={spelled(length)} is no time", hint="give a duration above zero")
        if self.every is not None and not counts(self.every):
            raise PlanError(
                f"every={self.every!r} is no number of records", hint='give a whole number above zero; a time is early="5 seconds"'
            )

    @property
    def again(self) -> bool:
        """Whether a window may give out more than one pane."""
        return self.until > _NOTHING or self.early is not None or self.every is not None

    @property
    def in_panes(self) -> bool:
        """Whether panes are asked for that not every batch of late records makes and replaces."""
        return self != Emit(until=self.until) and self.again

    @property
    def retracts(self) -> bool:
        return self.again and self.mode == RETRACTING

    @property
    def restates(self) -> bool:
        """Whether panes say again what others have said, and those stand."""
        return self.again and self.mode == ACCUMULATING

    def __str__(self) -> str:
        early = [f"early every {spelled(self.early)}"] if self.early is not None else []
        early += [f"early after {self.every} records"] if self.every is not None else []
        until = [f"corrected until {spelled(self.until)} after its end"] if self.until else []
        until += [f"late every {spelled(self.late)}"] if self.late else []
        mode = [self.mode] if self.again and self.mode != RETRACTING else []
        return "".join(f", {part}" for part in (*early, *until, *mode))


ON_TIME = Emit()
