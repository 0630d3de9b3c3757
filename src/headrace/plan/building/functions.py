"""The user's functions, checked when they are declared: a wrong one would fail for every record."""

from __future__ import annotations

from inspect import Signature, signature
from typing import Any

from headrace.core.errors import PlanError


def refuse_arity(function: Any, takes: tuple[str, ...], role: str, at: str | None) -> None:
    """A function with other parameters would fail for every record; it may take only the first of them."""
    said, name = f"({', '.join(takes)})", getattr(function, "__name__", repr(function))
    if not callable(function):
        raise PlanError(f"{role}: {function!r} is not a function", hint=f"give one that is called with {said}", where=at)
    try:
        known = signature(function)
    except ValueError:
        # Some functions written in C do not tell.
        return
    if not any(_binds(known, takes[:count]) for count in range(1, len(takes) + 1)):
        raise PlanError(f"{role}: {name}{known} is called with {said}", hint=f"let it take these: {name}{said}", where=at)


def _binds(known: Signature, arguments: tuple[str, ...]) -> bool:
    try:
        known.bind(*arguments)
    except TypeError:
        return False
    return True
