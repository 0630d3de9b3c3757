"""Names of columns as users give them: one, or several."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.core.errors import PlanError

Names = str | Sequence[str]


def listed(names: Names) -> tuple[str, ...]:
    """One name or several, as several.

    >>> listed("url"), listed(["url", "country"]), listed(())
    (('url',), ('url', 'country'), ())
    """
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise PlanError(f"{names!r} names no columns", hint='give one name, or a list of them: ["country", "city"]')
    return tuple(names)
