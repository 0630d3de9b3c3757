"""A live table in a cell of a notebook: a widget that follows a view for as long as the kernel runs, or until it is closed."""

from __future__ import annotations

import threading
from datetime import date, datetime
from importlib.resources import files
from typing import Any

import anywidget  # type: ignore[import-not-found, unused-ignore]
import traitlets  # type: ignore[import-not-found, unused-ignore]

from headrace.log import Log
from headrace.notebook.view_rows import ViewRows

_WAIT = "250 milliseconds"


class LiveTable(anywidget.AnyWidget):  # type: ignore[misc, unused-ignore]
    """The first rows of a view, redrawn as they change. `close()` ends it."""

    _esm = (files("headrace.notebook") / "live_table.js").read_text(encoding="utf-8")
    _css = (files("headrace.notebook") / "live_table.css").read_text(encoding="utf-8")
    columns: traitlets.List[Any] = traitlets.List().tag(sync=True)
    key: traitlets.List[Any] = traitlets.List().tag(sync=True)
    rows: traitlets.List[Any] = traitlets.List().tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)

    def __init__(self, log: Log, view: str, key: tuple[str, ...], limit: int) -> None:
        self._view, self._limit, self._rows = view, limit, ViewRows(log, view, key)
        self._ended = threading.Event()
        super().__init__(columns=self._rows.columns, key=list(key), **self._shown())
        self._thread = threading.Thread(target=self._follow, name=f"live table of {view}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Follow the view no longer, and take the table out of the cell."""
        self._ended.set()
        self._thread.join()
        super().close()

    def _follow(self) -> None:
        while not self._ended.is_set():
            if self._rows.follow(_WAIT):
                shown = self._shown()
                with self.hold_sync():
                    self.rows, self.note = shown["rows"], shown["note"]

    def _shown(self) -> dict[str, Any]:
        rows = self._rows.first(self._limit)
        values = [[_plain(row[name]) for name in self._rows.columns] for row in rows]
        return {"rows": values, "note": f"{self._view}: {len(rows):,} of {len(self._rows):,} rows, live"}


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, datetime | date):
        return value.isoformat(sep=" ").replace("+00:00", "Z") if isinstance(value, datetime) else value.isoformat()
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
