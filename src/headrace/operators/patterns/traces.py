"""Traces of paths: what conditions see of the rows that a search has taken. Paths with one trace have one future."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.plan.patterns.formulas import AGGREGATE, CLASSIFIER, FIRST, LAST, Value

# The rows of any variable.
_EVERY = -1
Trace = tuple[object, ...]


class Traces:
    """The traces for some values of a match, and for its last row where `last` is asked for. They are extended row by row."""

    def __init__(self, values: Iterable[Value], variables: Sequence[str], *, last: bool) -> None:
        seen = {(LAST, _EVERY, 0)} if last else set()
        seen |= {
            (value.kind, _EVERY if value.variable is None else variables.index(value.variable), value.offset)
            for value in values
            if value.kind in (FIRST, LAST, AGGREGATE, CLASSIFIER)
        }
        self._seen = sorted(seen)
        # All rows that an aggregate sees are one number, by that of those before and the last one.
        self._numbers: dict[tuple[object, int], int] = {}

    @property
    def begin(self) -> Trace:
        return tuple(0 if kind == AGGREGATE else () for kind, _, _ in self._seen)

    def extended(self, trace: Trace, row: int, variable: int) -> Trace:
        """The trace of a path that takes one more row."""
        return tuple(
            self._part(kind, offset, part, row, variable) if wanted in (_EVERY, variable) else part
            for (kind, wanted, offset), part in zip(self._seen, trace, strict=True)
        )

    def _part(self, kind: str, offset: int, part: object, row: int, variable: int) -> object:
        if kind == AGGREGATE:
            return self._numbers.setdefault((part, row), len(self._numbers) + 1)
        if kind == CLASSIFIER:
            return variable
        assert isinstance(part, tuple)
        if kind == FIRST:
            return part if len(part) > offset else (*part, row)
        return (*part, row)[-(offset + 1) :]
