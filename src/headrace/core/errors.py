"""Every error Headrace raises on purpose: a fact, why it matters, what to do, and where the user wrote it.

HeadraceError
├── PlanError        what was declared cannot be run as meant
├── SchemaError      data and the declared columns differ
├── SettingsError    a setting is missing, unknown or has no meaning
├── ConnectorError   an outside system refused or vanished
├── LogError         the event log (its kinds are in headrace.log.errors)
└── JobError         a running job had to stop
"""

from __future__ import annotations

from typing import Any


class HeadraceError(Exception):
    """A fact with names and values, with `why` it matters, a `hint` what to do, and `where` it was written."""

    def __init__(self, fact: str, *, why: str | None = None, hint: str | None = None, where: str | None = None) -> None:
        super().__init__(fact)
        self.fact = fact
        self.why = why
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        lines = [self.fact]
        lines += [f"  {label}: {text}" for label, text in self._details() if text]
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders (Spark workers, pools): keyword-only arguments need a way back.
        return _rebuild, (type(self), self.args, self.__dict__)

    def _details(self) -> list[tuple[str, str | None]]:
        return [("why", self.why), ("hint", self.hint), ("where", self.where)]


def _rebuild(kind: type[HeadraceError], args: tuple[Any, ...], state: dict[str, Any]) -> HeadraceError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class PlanError(HeadraceError):
    """The declared plan cannot be run as it was meant."""


class SchemaError(HeadraceError):
    """Data and the declared columns differ."""


class SettingsError(HeadraceError):
    """A setting is missing, unknown, or has a meaningless value."""


class ConnectorError(HeadraceError):
    """An outside system refused or vanished."""


class LogError(HeadraceError):
    """The event log cannot do what was asked."""


class JobError(HeadraceError):
    """A running job had to stop."""
