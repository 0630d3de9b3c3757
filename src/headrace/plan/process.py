"""The step of a plan that runs the user's own logic for each key, with state and timers in event time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace.core.columns.schema import ddl
from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.plan.nodes import KeyedStep, StateSummary, facts_first

IN_TIME, AS_THEY_COME = "time", "arrival"
# The columns of `state` and of the frame of states in addition to the user's.
CLEAR, TIMER, FIRED = "clear", "timer_at", "fired_at"


@dataclass(frozen=True)
class Logic:
    """The user's functions: `on_event` for each event and `on_timer` for each timer, or `on_event` for all at once."""

    on_event: Callable[..., Any]
    on_timer: Callable[..., Any] | None = None
    vectorized: bool = False

    @property
    def words(self) -> str:
        names = [_name(function) for function in (self.on_event, self.on_timer) if function is not None]
        return f"{' and '.join(names)}{', vectorized' if self.vectorized else ''}"


@dataclass(frozen=True)
class Process(KeyedStep):
    """The results of the user's functions for the records of each key; `order` is the order of the calls."""

    state: pa.Schema = field(compare=False)
    logic: Logic = field(compare=False)
    ttl: timedelta | None
    order: str

    def __post_init__(self) -> None:
        for refuse in (self._refuse_names, self._refuse_changes, self._refuse_an_unknown_order, self._refuse_time_without_time):
            refuse()

    @property
    def keys(self) -> tuple[str, ...]:
        return ()

    @property
    def expires_after(self) -> timedelta | None:
        return self.ttl

    @property
    def waits(self) -> bool:
        return self.order == IN_TIME

    @property
    def judges_lateness(self) -> bool:
        return True

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        return tuple(function for function in (self.logic.on_event, self.logic.on_timer) if function is not None)

    @property
    def state_parts(self) -> dict[str, Any]:
        """What the functions keep; their code may change."""
        called = [self.logic.vectorized, self.logic.on_timer is not None]
        return {"by": self.by, "state": self.state, "order": self.order, "logic": called, "returns": self.columns}

    @property
    def does(self) -> str:
        kept = f", state ({ddl(self.state)})" if len(self.state) else ""
        order = ", as they come" if self.order == AS_THEY_COME else ""
        return f"process {self.logic.words} by {', '.join(self.by)}{order}{kept}"

    @property
    def state_summary(self) -> StateSummary:
        waiting = "records that wait for the watermark, and " if self.order == IN_TIME else ""
        kept = "none: as many as there are keys" if self.ttl is None else f"{spelled(self.ttl)} after a key's last event or timer"
        return StateSummary(f"{waiting}a row per key with its timers", kept)

    def _refuse_names(self) -> None:
        if not self.by:
            raise PlanError(f"process of {self.input.name!r} has no key", hint="say whose records belong together: by=", where=self.where)
        for name in self.state.names:
            if (
                not name.isidentifier()
                or name.startswith("_")
                or name in (*self.by, CLEAR, TIMER, FIRED)
                or not self.state.field(name).nullable
            ):
                raise PlanError(
                    f"the state of {self.name!r} has a column {name!r}",
                    why="state is read and written as state.name, is null at first, and is stored with the key",
                    hint=f"give it a plain name, none of the key, nor {CLEAR}, {TIMER} or {FIRED}, and leave out NOT NULL",
                    where=self.where,
                )

    def _refuse_changes(self) -> None:
        if self.input.revises:
            raise PlanError(
                f"process of {self.input.name!r}, whose results change",
                why="a function cannot retract what it made of a result that is retracted later",
                hint=facts_first(self.input),
                where=self.where,
            )

    def _refuse_an_unknown_order(self) -> None:
        if self.order not in (IN_TIME, AS_THEY_COME):
            raise PlanError(
                f"order={self.order!r} is not known",
                hint='"time" (of events, when the watermark has passed them) or "arrival" (as they come)',
                where=self.where,
            )

    def _refuse_time_without_time(self) -> None:
        if not self.input.watermarked and (self.order == IN_TIME or self.ttl is not None or self.logic.on_timer is not None):
            raise PlanError(
                f"process of {self.input.name!r}, which has no event time",
                why="the order of events, ttl and timers are all in event time",
                hint='declare the stream with time= and watermark=, or give order="arrival", ttl=None and no on_timer',
                where=self.where,
            )


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__)).rpartition("<locals>.")[2]
