"""Panes: the stretches of time that no window boundary divides, and the windows that are unions of them.

A tree merges them by powers of two, so that a window of 1,440 panes costs a few merges, not 1,440, and windows that fire together share
their common part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from headrace.operators.aggregates.partials import merged
from headrace.operators.state.chunks import Chunks

if TYPE_CHECKING:
    from headrace.operators.windows.paned import WindowSpec

PANE = "_pane"
# A window of more than 2**32 panes does not exist.
_LEVELS = 32


def merge_keys(spec: WindowSpec, frame: pl.DataFrame) -> pl.DataFrame:
    """Partial results of several panes, merged by key."""
    return merged(frame, spec.by, spec.aggregates)


class PaneTree:
    """Unions of neighboring panes, computed when first needed and dropped when one of their panes changes."""

    def __init__(self, spec: WindowSpec, panes: Chunks) -> None:
        self._spec = spec
        self._panes = panes
        self._nodes: dict[tuple[int, int], pl.DataFrame | None] = {}

    def windows(self, ends: Sequence[int], only: pl.DataFrame | None = None) -> Iterator[tuple[int, pl.DataFrame]]:
        """The windows with these ends, by key; their common part is merged once. `only` limits them to its keys."""
        if not ends:
            return
        size, first, last = self._spec.size, ends[0], ends[-1]
        self._load(first - size, last)
        # Every one of these windows contains the time from the start of the last one to the end of the first one.
        from_, upto = last - size, first
        shared = self._cover(from_, upto)
        if len(shared) > 1:
            shared = [merge_keys(self._spec, pl.concat(shared))]
        for end in ends:
            apart = [*self._cover(end - size, from_), *shared, *self._cover(upto, end)]
            parts = self._limited(apart if from_ < upto else self._cover(end - size, end), only)
            if parts:
                yield end, merge_keys(self._spec, pl.concat(parts)) if len(parts) > 1 else parts[0]

    def invalidate(self, panes: list[int]) -> None:
        """Drop every union that contains one of these panes."""
        for pane in panes if self._nodes else ():
            place = self._place(pane)
            for level in range(_LEVELS):
                self._nodes.pop((level, place >> level), None)

    def drop_before(self, limit: int) -> None:
        """Drop unions of panes that begin before `limit`."""
        place = self._place(limit)
        for level, index in [node for node in self._nodes if (node[1] << node[0]) < place]:
            del self._nodes[level, index]

    def _place(self, time: int) -> int:
        return (time - self._spec.offset) // self._spec.pane

    def _load(self, low: int, high: int) -> None:
        """Load the missing panes of a range from the state, all at once."""
        missing = [place for place in range(self._place(low), self._place(high)) if (0, place) not in self._nodes]
        if not missing:
            return
        start = missing[0] * self._spec.pane + self._spec.offset
        found = self._panes.between(start, (missing[-1] + 1) * self._spec.pane + self._spec.offset)
        parts = {} if found is None else found.partition_by(PANE, as_dict=True, include_key=False)
        by_place = {self._place(int(key[0])): part for key, part in parts.items()}
        for place in missing:
            self._nodes[0, place] = by_place.get(place)

    def _cover(self, low: int, high: int) -> list[pl.DataFrame]:
        """The fewest nodes whose panes are those of a range."""
        place, end = self._place(low), self._place(high)
        found = []
        while place < end:
            level = (end - place).bit_length() - 1
            if place:
                level = min(level, (place & -place).bit_length() - 1)
            found.append(self._node(level, place >> level))
            place += 1 << level
        return [node for node in found if node is not None]

    def _node(self, level: int, index: int) -> pl.DataFrame | None:
        if (level, index) not in self._nodes:
            halves = [half for half in (self._node(level - 1, 2 * index), self._node(level - 1, 2 * index + 1)) if half is not None]
            union = merge_keys(self._spec, pl.concat(halves)) if len(halves) > 1 else halves[0] if halves else None
            self._nodes[level, index] = union
        return self._nodes[level, index]

    def _limited(self, parts: list[pl.DataFrame], only: pl.DataFrame | None) -> list[pl.DataFrame]:
        if only is None:
            return parts
        limited = [part.join(only, on=list(self._spec.by), how="semi", nulls_equal=True) for part in parts]
        return [part for part in limited if not part.is_empty()]
