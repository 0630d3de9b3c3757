"""Isolation of the records that a system refuses among many that it accepts."""

from __future__ import annotations

from collections.abc import Callable

_PARTS = 8


def refused(count: int, take: Callable[[int, int], None], kinds: tuple[type[Exception], ...]) -> dict[int, str]:
    """Why each of `count` records is refused; `take` is given ranges of them, in order, until everything else is stored.

    `take(first, last)` stores a range as a whole, or raises one of `kinds` and stores nothing of it.

    >>> def take(first, last):
    ...     if 3 in range(first, last):
    ...         raise ValueError("three")
    >>> refused(10, take, (ValueError,))
    {3: 'three'}
    """
    found: dict[int, str] = {}
    waiting = [(0, count)] if count else []
    while waiting:
        first, last = waiting.pop()
        try:
            take(first, last)
        except kinds as error:
            if last - first == 1:
                found[first] = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
                continue
            size = -(-(last - first) // _PARTS)
            waiting += [(at, min(at + size, last)) for at in reversed(range(first, last, size))]
    return found
