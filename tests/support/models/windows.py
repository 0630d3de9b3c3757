"""Models of windows and of the panes that they emit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.models.rows import FOREVER, NEVER, Epoch, Relation, Row, aggregated

Key = tuple[Any, ...]
DISCARDING, ACCUMULATING, RETRACTING = "discarding", "accumulating", "retracting"


@dataclass(frozen=True)
class Panes:
    """`emit(early=, every=, late=, until=, mode=)` in microseconds; `kept` is `until` and how late results of a step before it come."""

    early: int | None = None
    every: int | None = None
    late: int | None = None
    kept: int = 0
    mode: str = RETRACTING


@dataclass
class _Window:
    """What a window holds, what came since its last pane, and which rows of it are shown."""

    start: int
    end: int
    rows: Counter[Row] = field(default_factory=Counter)
    fresh: list[Row] = field(default_factory=list)
    changes: int = 0
    revision: int = 0
    shown: list[Row] = field(default_factory=list)

    @property
    def last(self) -> int:
        return max(row.time for row in self.rows)


@dataclass
class _Emitting:
    """What windows have in common that emit panes."""

    by: Sequence[str]
    panes: Panes
    late: int = 0
    _facts: Relation = field(default_factory=Counter)
    _latest: dict[Key, Row] = field(default_factory=dict)

    def _due(self, window: _Window, epoch: Epoch) -> str | None:
        panes = self.panes
        if window.end <= epoch.before:
            now = panes.late is None or epoch.passes(panes.late) or window.end + panes.kept <= epoch.after
            return "late" if window.changes and now else None
        if window.end <= epoch.after:
            return epoch.on_time
        asked = (epoch.passes(panes.early) and window.changes) or (panes.every is not None and window.changes >= panes.every)
        return "early" if asked else None

    def _emit(self, key: Key, window: _Window, pane: str) -> None:
        discards = self.panes.mode == DISCARDING
        contents = window.fresh if discards else list(window.rows.elements())
        window.shown, window.fresh, window.changes = [], [], 0
        if not contents and not (discards and pane in ("on-time", "idle")):
            return
        endless = window.end == FOREVER
        bounds = {"window_start": None if endless else window.start, "window_end": None if endless else window.end}
        time = window.last if endless else window.end - 1
        keys = dict(zip(self.by, key, strict=True))
        row = Row.of(time, **keys, **bounds, **aggregated(contents), pane=pane, revision=window.revision)
        window.revision += 1
        if self.panes.mode == RETRACTING:
            window.shown = [row]
        elif discards:
            self._facts[row] += 1
        else:
            self._latest[(*key, window.start)] = row

    def _held(self) -> Relation:
        return self._facts + Counter(self._latest.values())


@dataclass
class Intervals(_Emitting):
    """Windows whose bounds follow from the time alone: `windows` gives start and end of each that holds a time."""

    windows: Callable[[int], list[tuple[int, int]]] = lambda _: []
    _known: dict[tuple[Key, int, int], _Window] = field(default_factory=dict)

    def epoch(self, epoch: Epoch) -> Relation:
        for rows, sign in ((epoch.removed, -1), (epoch.added, 1)):
            for row in rows:
                self._take(row, sign, epoch)
        for (key, _, end), window in self._known.items():
            closed = end + self.panes.kept <= epoch.before
            pane = None if closed else self._due(window, epoch)
            if pane is not None:
                self._emit(key, window, pane)
        return self._held() + Counter(row for window in self._known.values() for row in window.shown)

    def _take(self, row: Row, sign: int, epoch: Epoch) -> None:
        held = [(start, end) for start, end in self.windows(row.time) if end + self.panes.kept > epoch.before]
        if not held:
            assert sign > 0, "a retraction came too late"
            self.late += 1
        for start, end in held:
            window = self._known.setdefault((row.key(self.by), start, end), _Window(start, end))
            window.rows[row] += sign
            assert window.rows[row] >= 0, "a window has lost a row that it never had"
            window.fresh.append(row)
            window.changes += 1


@dataclass
class Sessions(_Emitting):
    """`session(gap)`: rows of a key that follow each other in less than `gap`. A row is late that is in no session which is not closed."""

    gap: int = 0
    _open: dict[Key, list[_Window]] = field(default_factory=dict)
    _closed: Relation = field(default_factory=Counter)

    def epoch(self, epoch: Epoch) -> Relation:
        assert not epoch.removed
        for key in {row.key(self.by) for row in epoch.added} | set(self._open):
            kept = self._open.get(key, [])
            new = [_Window(row.time, row.time + self.gap, Counter([row]), [row], 1) for row in epoch.added if row.key(self.by) == key]
            sessions = []
            for session, old in self._merged(kept, new):
                if not old and session.end + self.panes.kept <= epoch.before:
                    self.late += session.rows.total()
                else:
                    sessions.append(session)
                    self._show(key, session, epoch)
            self._open[key] = [session for session in sessions if session.end + self.panes.kept > epoch.after]
            self._closed.update(row for session in sessions for row in session.shown if session not in self._open[key])
        return self._held() + self._closed + Counter(row for kept in self._open.values() for window in kept for row in window.shown)

    def _merged(self, kept: list[_Window], new: list[_Window]) -> list[tuple[_Window, bool]]:
        """Sessions that overlap, as one; and whether one of them was there before."""
        merged: list[tuple[_Window, bool]] = []
        for window, old in sorted([(one, True) for one in kept] + [(one, False) for one in new], key=lambda pair: pair[0].start):
            if not merged or merged[-1][0].end <= window.start:
                merged.append((window, old))
                continue
            other, before = merged.pop()
            both = _Window(
                min(other.start, window.start), max(other.end, window.end), other.rows + window.rows, other.fresh + window.fresh,
                other.changes + window.changes, max(other.revision, window.revision), other.shown + window.shown,
            )  # fmt: skip
            merged.append((both, before or old))
        return merged

    def _show(self, key: Key, session: _Window, epoch: Epoch) -> None:
        pane = self._due(session, epoch)
        early = self.panes.early is not None or self.panes.every is not None
        outgrown = session.end > epoch.after and any(row["window_end"] <= epoch.after for row in session.shown)
        if pane is None and outgrown and early:
            pane = "early"
        if pane is not None:
            self._emit(key, session, pane)
        elif outgrown:
            session.shown = []


@dataclass
class Sliding:
    """`sliding(length)`: for each event the events of its key in the time up to it. One whose own window is closed is in later ones."""

    by: Sequence[str]
    length: int
    kept: int
    late: int = 0
    _rows: list[Row] = field(default_factory=list)
    _windows: dict[tuple[Key, int], tuple[frozenset[int], Row]] = field(default_factory=dict)
    _ends: set[tuple[Key, int]] = field(default_factory=set)

    def epoch(self, epoch: Epoch) -> Relation:
        assert not epoch.removed
        closed = epoch.before - self.kept
        for row in epoch.added:
            if row.time + self.length < closed:
                self.late += 1
                continue
            self._rows.append(row)
            if row.time >= closed:
                self._ends.add((row.key(self.by), row.time))
        for key, end in [place for place in self._ends if closed <= place[1] < epoch.after]:
            held = [n for n, row in enumerate(self._rows) if row.key(self.by) == key and end - self.length <= row.time <= end]
            self._show(key, end, frozenset(held), "late" if end < epoch.before else epoch.on_time)
        return Counter(row for _, row in self._windows.values())

    def _show(self, key: Key, end: int, held: frozenset[int], pane: str) -> None:
        before, shown = self._windows.get((key, end), (None, None))
        if before == held:
            return
        revision = 0 if shown is None else shown["revision"] + 1
        bounds = {"window_start": end - self.length, "window_end": end}
        values = aggregated(self._rows[n] for n in held)
        row = Row.of(end, **dict(zip(self.by, key, strict=True)), **bounds, **values, pane=pane, revision=revision)
        self._windows[key, end] = held, row


def regular(size: int, hop: int, offset: int = 0) -> Callable[[int], list[tuple[int, int]]]:
    def windows(time: int) -> list[tuple[int, int]]:
        last = (time - offset) // hop * hop + offset
        return [(start, start + size) for start in range(last, time - size, -hop)]

    return windows


def whole(_: int) -> list[tuple[int, int]]:
    return [(NEVER, FOREVER)]
