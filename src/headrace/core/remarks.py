"""Warnings about what was declared: it can be run, and may not do what was meant."""

from __future__ import annotations

import warnings
from typing import Any

# Which warnings were shown, by place, so that planning twice does not say it twice.
_shown: dict[Any, Any] = {}


class PlanWarning(UserWarning):
    """What was declared does something that may surprise: the fact, why it matters, what to do, and where it was written."""


def warn(fact: str, *, why: str, hint: str, where: str | None) -> None:
    """Show a warning at the line of the user's that made it."""
    text = f"{fact}\n  why: {why}\n  hint: {hint}"
    file, _, line = (where or "").rpartition(":")
    warnings.warn_explicit(text, PlanWarning, file or "app", int(line) if line.isdecimal() else 1, registry=_shown)
