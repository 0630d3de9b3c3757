"""Models of the steps that remember something of each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.models.rows import FOREVER, NEVER, Epoch, Relation, Row, aggregated, in_order, refuse_ties

Key = tuple[Any, ...]


@dataclass
class _Kept:
    rows: Counter[Row] = field(default_factory=Counter)
    last: int = NEVER


@dataclass
class Group:
    """`group(by, ttl=).agg(...)`: aggregates of all rows of a key; silent for `ttl`, the key is removed and begins anew."""

    by: Sequence[str]
    ttl: int | None
    late: int = 0
    _keys: dict[Key, _Kept] = field(default_factory=dict)

    def epoch(self, epoch: Epoch) -> Relation:
        for rows, sign in ((epoch.added, 1), (epoch.removed, -1)):
            for row in rows:
                kept = self._keys.setdefault(row.key(self.by), _Kept())
                kept.rows[row] += sign
                kept.last = max(kept.last, row.time)
        for key, kept in list(self._keys.items()):
            assert all(count >= 0 for count in kept.rows.values()), f"{key} has lost a row that it never had"
            silent = self.ttl is not None and kept.last + self.ttl <= epoch.moment
            if silent or not kept.rows.total():
                del self._keys[key]
        found = [Row.of(k.last, **dict(zip(self.by, key, strict=True)), **aggregated(k.rows.elements())) for key, k in self._keys.items()]
        return Counter(found)


@dataclass
class Table:
    """`to_table(key, ttl=)`: the latest row of each key, by event time; silent for `ttl`, the key is removed.

    Of facts of equal time the one that came last is the latest, of rows that change the one with the largest key of its own (`own`).
    """

    key: Sequence[str]
    ttl: int | None
    changing: bool
    own: Sequence[str] = ()
    late: int = 0
    _facts: dict[Key, Row] = field(default_factory=dict)
    _rows: Counter[Row] = field(default_factory=Counter)
    _watermark: int = NEVER

    def epoch(self, epoch: Epoch) -> Relation:
        self._watermark = epoch.moment
        if self.changing:
            self._rows = self._rows + Counter(epoch.added) - Counter(epoch.removed)
            latest: dict[Key, Row] = {}
            for row in sorted(self._rows, key=lambda row: (row.time, _ranked(row.key(self.own)))):
                latest[row.key(self.key)] = row
            return Counter(row for row in latest.values() if self._lives(row))
        refuse_ties(epoch.added, self.key)
        for row in epoch.added:
            known = self._facts.get(row.key(self.key))
            if known is None or known.time <= row.time:
                self._facts[row.key(self.key)] = row
        self._facts = {key: row for key, row in self._facts.items() if self._lives(row)}
        return Counter(self._facts.values())

    def _lives(self, row: Row) -> bool:
        return self.ttl is None or row.time + self.ttl > self._watermark


@dataclass
class Top:
    """`top(count, by="v", per=, rank=)`: the rows with the largest value, and their places; of equal ones those with the smallest key."""

    count: int
    per: Sequence[str]
    own: Sequence[str]
    rank: str = ""
    late: int = 0
    _rows: Counter[Row] = field(default_factory=Counter)

    def epoch(self, epoch: Epoch) -> Relation:
        self._rows = self._rows + Counter(epoch.added) - Counter(epoch.removed)
        groups: dict[Key, list[Row]] = {}
        for row in self._rows.elements():
            if row["v"] is not None:
                groups.setdefault(row.key(self.per), []).append(row)
        ordered = (sorted(rows, key=lambda row: (-row["v"], _ranked(row.key(self.own)))) for rows in groups.values())
        return Counter(self._placed(row, place) for rows in ordered for place, row in enumerate(rows[: self.count], 1))

    def _placed(self, row: Row, place: int) -> Row:
        return Row.of(row.time, **dict(row.cells), **{self.rank: place}) if self.rank else row


@dataclass
class Passing:
    """A step without state, which says what goes on of an epoch, in the order in which it came."""

    late: int = 0
    _rows: Counter[Row] = field(default_factory=Counter)

    def epoch(self, epoch: Epoch) -> Relation:
        passed = self.narrowed(epoch)
        self._rows = self._rows + Counter(passed.added) - Counter(passed.removed)
        return Counter(self._rows)

    def narrowed(self, epoch: Epoch) -> Epoch:
        raise NotImplementedError


@dataclass
class Positive(Passing):
    """`where("v > 0")`: only rows for which it is true, as long as they are there."""

    def narrowed(self, epoch: Epoch) -> Epoch:
        added, removed = ([row for row in rows if row["v"] is not None and row["v"] > 0] for rows in (epoch.added, epoch.removed))
        return replace(epoch, added=added, removed=removed)


@dataclass
class Dedup:
    """`dedup(by, ttl=)`: in the order of arrival, only rows that are not within `ttl` of one that went on."""

    by: Sequence[str]
    ttl: int | None
    lateness: int
    late: int = 0
    duplicates: int = 0
    _passed: list[Row] = field(default_factory=list)

    def epoch(self, epoch: Epoch) -> Relation:
        assert not epoch.removed
        refuse_ties(epoch.added, self.by)
        for row in epoch.added:
            if row.time < epoch.before - self.lateness:
                self.late += 1
            elif any(other.key(self.by) == row.key(self.by) and self._near(other, row) for other in self._passed):
                self.duplicates += 1
            else:
                self._passed.append(row)
        return Counter(self._passed)

    def _near(self, one: Row, two: Row) -> bool:
        return self.ttl is None or abs(one.time - two.time) < self.ttl


@dataclass
class InTurn:
    """Rows that wait until the watermark has passed them."""

    by: Sequence[str]
    lateness: int
    late: int = 0
    _waiting: list[Row] = field(default_factory=list)

    def _released(self, epoch: Epoch) -> list[Row]:
        assert not epoch.removed
        for row in epoch.added:
            if row.time < epoch.before - self.lateness:
                self.late += 1
            else:
                self._waiting.append(row)
        passed = epoch.after if epoch.after == FOREVER else epoch.after - self.lateness
        released = [row for row in self._waiting if row.time < passed]
        self._waiting = [row for row in self._waiting if row.time >= passed]
        return in_order(released, self.by)


@dataclass
class Previous(InTurn):
    """`with_previous("v", by=, ttl=)`: each row with `v` of the row of its key before it, if that is less than `ttl` before."""

    ttl: int | None = None
    _last: dict[Key, Row] = field(default_factory=dict)
    _results: Relation = field(default_factory=Counter)

    def epoch(self, epoch: Epoch) -> Relation:
        for row in self._released(epoch):
            last = self._last.get(row.key(self.by))
            near = last is not None and (self.ttl is None or row.time - last.time < self.ttl)
            self._results[Row.of(row.time, **dict(row.cells), previous_v=last["v"] if near and last is not None else None)] += 1
            self._last[row.key(self.by)] = row
        return Counter(self._results)


@dataclass
class CountWindow(InTurn):
    """`window(count_window(records, every=), by=)`: rows of a key by count, in the order of event time; the rest when the input ends."""

    records: int = 1
    every: int = 1
    _taken: dict[Key, list[Row]] = field(default_factory=dict)

    def epoch(self, epoch: Epoch) -> Relation:
        for row in self._released(epoch):
            self._taken.setdefault(row.key(self.by), []).append(row)
        found: Relation = Counter()
        for key, rows in self._taken.items():
            for number, first in enumerate(range(0, len(rows), self.every)):
                held = rows[first : first + self.records]
                if len(held) == self.records or epoch.after == FOREVER:
                    bounds = {"window_start": held[0].time, "window_end": held[-1].time, "window_number": number}
                    keys = dict(zip(self.by, key, strict=True))
                    time = held[-1].time if len(held) == self.records else max(held[-1].time, epoch.before)
                    found[Row.of(time, **keys, **bounds, **aggregated(held), pane="on-time", revision=0)] += 1
        return found


def _ranked(key: Key) -> list[tuple[Any, ...]]:
    """Nothing is less than anything, as in Spark."""
    return [() if part is None else (part,) for part in key]
