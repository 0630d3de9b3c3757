"""Models of steps whose results are facts: elements of arrays, changes of tables, and a running total by a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.models.keyed import InTurn, Key, Passing
from tests.support.models.rows import NEVER, Epoch, Relation, Row


@dataclass
class Elements(Passing):
    """`flat_map("array(v, v + 1)", into="e").with_columns(v="e")`: two rows of each."""

    def narrowed(self, epoch: Epoch) -> Epoch:
        added, removed = ([row for whole in rows for row in _elements(whole)] for rows in (epoch.added, epoch.removed))
        return replace(epoch, added=added, removed=removed)


def _elements(row: Row) -> list[Row]:
    values = [row["v"], None if row["v"] is None else row["v"] + 1]
    return [Row.of(row.time, **{**dict(row.cells), "v": value, "e": value}) for value in values]


@dataclass
class Changes:
    """`to_stream()`: what became of each row of a table in an epoch; rows are told apart by their columns `own`.

    `expires`: how long after its time a row expires. A row that goes for another reason goes at the watermark.
    """

    own: Sequence[str]
    expires: int | None
    late: int = 0
    by: Sequence[str] = ()
    _facts: Relation = field(default_factory=Counter)

    def epoch(self, epoch: Epoch) -> Relation:
        gone = {row.key(self.own): row for row in epoch.removed}
        came = {row.key(self.own): row for row in epoch.added}
        assert (len(gone), len(came)) == (len(epoch.removed), len(epoch.added)), "two rows of one key"
        for key, row in came.items():
            self._facts[_said(row, row.time, "update" if key in gone else "insert")] += 1
        for key in gone.keys() - came.keys():
            self._facts[_said(gone[key], self._gone_at(gone[key], epoch), "delete")] += 1
        return Counter(self._facts)

    def _gone_at(self, row: Row, epoch: Epoch) -> int:
        if self.expires is not None and row.time + self.expires <= epoch.moment:
            return row.time + self.expires
        return max(row.time, epoch.before)


def _said(row: Row, time: int, operation: str) -> Row:
    return Row.of(time, **dict(row.cells), op=operation)


def totals(by: Sequence[str]) -> Callable[..., Any]:
    """A function of the user's: the number of events of a key so far, and the sum of their values."""

    def on_event(event: Any, state: Any) -> Any:
        state.c, state.v = (state.c or 0) + 1, (state.v or 0) + (event.v or 0)
        yield {**{name: event[name] for name in by}, "c": state.c, "v": state.v}

    return on_event


@dataclass
class Totals(InTurn):
    """`process(totals(by), by=, ttl=)`: a key that was silent for `ttl` begins anew."""

    ttl: int | None = None
    _known: dict[Key, tuple[int, int, int]] = field(default_factory=dict)
    _results: Relation = field(default_factory=Counter)

    def epoch(self, epoch: Epoch) -> Relation:
        for row in self._released(epoch):
            key = row.key(self.by)
            last, count, total = self._known.get(key, (NEVER, 0, 0))
            if self.ttl is not None and last + self.ttl <= row.time:
                count, total = 0, 0
            count, total = count + 1, total + (row["v"] or 0)
            self._known[key] = row.time, count, total
            self._results[Row.of(row.time, **dict(zip(self.by, key, strict=True)), c=count, v=total)] += 1
        return Counter(self._results)
