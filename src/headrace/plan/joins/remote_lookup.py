"""The step of a plan that asks another system for the row of each record's key, and keeps the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Protocol, runtime_checkable

import pyarrow as pa

from headrace.core.columns.schema import ddl
from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.plan.joins.join import INNER, LEFT
from headrace.plan.nodes import StateSummary, Step, facts_first


@dataclass(frozen=True)
class Question:
    """What a lookup asks a connector for: the columns of a key, as they are named there, those of its row, and how long a call may take."""

    keys: pa.Schema
    returns: pa.Schema
    timeout: timedelta


@dataclass(frozen=True)
class Unreadable:
    """In place of a row: a key whose row a connector cannot read, and the reason."""

    key: Mapping[str, Any]
    reason: str


@runtime_checkable
class Answering(Protocol):
    """A connector to a system that can be asked for keys."""

    def answers(self, question: Question) -> Callable[[pa.Table], Any]:
        """The function that asks it."""
        ...


@dataclass(frozen=True)
class RemoteFunction:
    """A function from an Arrow table of keys to rows, and how it is called.

    A call has at most `batch` keys and may take `timeout`; `parallel` calls run at a time. One that raises or takes longer is repeated
    `retries` times, first after `backoff`, then after twice as long, and so on.
    """

    function: Callable[[pa.Table], Any]
    timeout: timedelta = timedelta(seconds=10)
    parallel: int = 4
    batch: int = 1_000
    retries: int = 3
    backoff: timedelta = timedelta(milliseconds=100)
    system: str = ""
    """The name of the system, if a connector asks it."""

    def __str__(self) -> str:
        if self.system:
            return self.system
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return str(name).rpartition("<locals>.")[2]


@dataclass(frozen=True)
class RemoteLookup(Step):
    """Each record with the row that another system has for its key: asked once an epoch, and kept for `ttl` of the wall clock."""

    stateful: ClassVar[bool] = True

    on: tuple[tuple[str, str], ...]
    """The columns of the key: the name here, and the name there."""
    returns: pa.Schema = field(compare=False)
    how: str
    ttl: timedelta
    remote: RemoteFunction = field(compare=False)

    def __post_init__(self) -> None:
        if self.how not in (INNER, LEFT):
            raise PlanError(f"how={self.how!r} of the lookup of {self.input.name!r} is not known", hint="inner, left", where=self.where)
        if self.input.revises:
            raise PlanError(
                f"lookup of {self.input.name!r}, whose results change",
                why="the answer may be another one when a result is retracted",
                hint=facts_first(self.input),
                where=self.where,
            )

    @property
    def by(self) -> tuple[str, ...]:
        return tuple(mine for mine, _ in self.on)

    @property
    def keyed_by(self) -> tuple[str, ...]:
        return self.by

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        return (self.remote.function,)

    @property
    def state_parts(self) -> dict[str, Any]:
        """What is asked for; the code that asks may change, and how it is called."""
        return {"on": self.on, "returns": self.returns, "how": self.how}

    @property
    def gathers(self) -> bool:
        return True

    @property
    def does(self) -> str:
        equal = ", ".join(mine if mine == there else f"{mine} = {there}" for mine, there in self.on)
        return f"{self.how} lookup on {equal} in {self.remote}, which returns ({ddl(self.returns)})"

    @property
    def state_summary(self) -> StateSummary:
        return StateSummary("the answer for each key", f"{spelled(self.ttl)} after it was asked for, by the wall clock")
