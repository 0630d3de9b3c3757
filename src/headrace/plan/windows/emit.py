"""Emission of windows as declared: when a pane is emitted, and its relation to earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.core.counts import counts
from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.core.nearest import choices

DISCARDING, ACCUMULATING, RETRACTING = "discarding", "accumulating", "retracting"
MODES = (DISCARDING, ACCUMULATING, RETRACTING)
_NOTHING = timedelta(0)


@dataclass(frozen=True)
class Emit:
    """The panes of a window. One is emitted when the watermark passes its end.

    Before that, `early`: each time the watermark has moved on by this much, and `every`: after this many records. After it, for `until`:
    one for each batch of late records, or with `late` each time the watermark has moved on by this much.

    A pane of mode `discarding` has what arrived since the previous one, of `accumulating` all so far, of `retracting` all so far after the
    previous one was retracted.
    """

    until: timedelta = _NOTHING
    early: timedelta | None = None
    every: int | None = None
    late: timedelta = _NOTHING
    mode: str = RETRACTING

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise PlanError(f"mode={self.mode!r} is not known", hint=choices(self.mode, MODES, "modes"))
        for name, length in (("early", self.early), ("late", self.late or None), ("until", self.until or None)):
            if length is not None and length <= _NOTHING:
                raise PlanError(f"{name}={spelled(length)} is not a time", hint="give a duration above zero")
        if self.every is not None and not counts(self.every):
            raise PlanError(
                f"every={self.every!r} is not a number of records", hint='give a whole number above zero; a time is early="5 seconds"'
            )

    @property
    def again(self) -> bool:
        """Whether a window may emit more than one pane."""
        return bool(self.triggers)

    @property
    def triggers(self) -> tuple[str, ...]:
        """The arguments by which a window emits more than one pane."""
        asked = {"early": self.early is not None, "every": self.every is not None, "until": self.until > _NOTHING}
        return tuple(name for name, given in asked.items() if given)

    @property
    def in_panes(self) -> bool:
        """Whether panes are requested other than those that every batch of late records makes and replaces."""
        return self != Emit(until=self.until) and self.again

    def __str__(self) -> str:
        early = [f"early every {spelled(self.early)}"] if self.early is not None else []
        early += [f"early after {self.every} records"] if self.every is not None else []
        until = [f"corrected until {spelled(self.until)} after its end"] if self.until else []
        until += [f"late every {spelled(self.late)}"] if self.late else []
        mode = [self.mode] if self.again and self.mode != RETRACTING else []
        return "".join(f", {part}" for part in (*early, *until, *mode))


ON_TIME = Emit()
