"""The rows of a view, followed in the log: a snapshot, then its changes, with no gap between them."""

from __future__ import annotations

from typing import Any

from headrace.log import Log


class ViewRows:
    """One row a key. `follow` waits for changes and takes them in."""

    def __init__(self, log: Log, view: str, key: tuple[str, ...]) -> None:
        self.columns, self._key = log.topic(view).columns.names, key
        found = log.snapshot(view)
        self._rows = {self._name(row): row for row in found.table.select(self.columns).to_pylist()}
        self._consumer = log.consumer(view, start=dict(found.next_offsets))

    def follow(self, timeout: str) -> bool:
        """Wait for changes, at most so long; whether there were any."""
        table = self._consumer.poll(timeout=timeout, columns=(*self.columns, "_tombstone"))
        for row in table.to_pylist() if table is not None else ():
            gone, name = row.pop("_tombstone"), self._name(row)
            if gone:
                self._rows.pop(name, None)
            else:
                self._rows[name] = row
        return table is not None

    def first(self, limit: int) -> list[dict[str, Any]]:
        """The rows that people look for: the newest window, the best rank, then by key."""
        times = [name for name in self._key if name in ("window_start", "minute")]
        rows = sorted(self._rows.values(), key=lambda row: tuple(str(row[name]) for name in self._key))
        if "rank" in self.columns:
            rows.sort(key=lambda row: row["rank"])
        for name in times:
            rows.sort(key=lambda row, by=name: str(row[by]), reverse=True)  # type: ignore[misc]
        return rows[:limit]

    def __len__(self) -> int:
        return len(self._rows)

    def _name(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._key)
