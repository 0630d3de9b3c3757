"""Hints for a name that is not known: the nearest one that is, and all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The known name most similar to `name`, if any is similar.

    >>> nearest("amuont", ["user", "amount"])
    'amount'
    """
    by_lower = {other.lower(): other for other in known}
    close = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[close[0]] if close else None


def choices(name: object, known: Iterable[str], kind: str) -> str:
    """The hint for a name that is not among the known ones.

    >>> choices("amuont", ["user", "amount"], "columns")
    "did you mean 'amount'? columns: user, amount"
    >>> choices("price", [], "columns")
    'columns: none'
    """
    names = list(known)
    near = nearest(name, names)
    return (f"did you mean {near!r}? " if near else "") + f"{kind}: {', '.join(names) or 'none'}"
