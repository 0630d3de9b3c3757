"""Checks of counts that users give."""

from __future__ import annotations


def counts(value: object, *, least: int = 1) -> bool:
    """Whether a value is a whole number of at least the given size. `True` does not count, although Python treats it as 1.

    >>> counts(3), counts(0), counts(True), counts(2.5), counts("3")
    (True, False, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
