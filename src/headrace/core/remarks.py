"""Warnings about a declaration that can be run but may not do what was meant."""

from __future__ import annotations

import warnings
from typing import Any

# The warnings shown so far, by place, so that planning twice shows each once.
_shown: dict[Any, Any] = {}


class PlanWarning(UserWarning):
    """The declaration does something that may surprise: the fact, why it matters, what to do, and where it was written."""


def warn(fact: str, *, why: str, hint: str, where: str | None) -> None:
    """Show a warning at the user's line that caused it."""
    text = f"{fact}\n  why: {why}\n  hint: {hint}"
    file, _, line = (where or "").rpartition(":")
    warnings.warn_explicit(text, PlanWarning, file or "app", int(line) if line.isdecimal() else 1, registry=_shown)
