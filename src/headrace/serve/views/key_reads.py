"""Questions for whole keys, answered together: all that wait share one look at the table.

A look takes about as long for fifty keys as for one. Under load questions wait for the look before theirs, not for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from headrace.operators.expressions.dtypes import dtype
from headrace.schema.legible import as_json
from headrace.serve.views.catalog import ServedView
from headrace.serve.views.formats import JSON, ResponseFormat
from headrace.serve.views.table import ViewTable

Key = tuple[Any, ...]
"""The values of a view's key columns."""


class _Look:
    """The rows that one look found."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows

    @cached_property
    def objects(self) -> list[str]:
        return as_json(self.rows).to_list()


@dataclass(frozen=True)
class KeyAnswer:
    """The row of a key as of an epoch, if there is one."""

    epoch: int
    _look: _Look | None = None
    _place: int = 0

    @property
    def found(self) -> bool:
        return self._look is not None

    def body(self, form: ResponseFormat) -> bytes:
        """The row in a format; in JSON as one object."""
        assert self._look is not None
        if form.media_type == JSON:
            return self._look.objects[self._place].encode()
        return form.rows(self._look.rows.slice(self._place, 1))


def key_frame(keys: Sequence[Key], view: ServedView) -> pl.DataFrame:
    """Keys, or their first parts, as columns."""
    kinds = [(name, dtype(view.columns.field(name).type)) for name in view.key]
    return pl.DataFrame([pl.Series(name, values, kind) for (name, kind), values in zip(kinds, zip(*keys, strict=True), strict=False)])


_Waiting = list[tuple[Key, asyncio.Future[KeyAnswer]]]


class KeyReads:
    """The questions that wait, by table."""

    def __init__(self) -> None:
        self._waiting: dict[ViewTable, _Waiting] = {}

    async def find(self, table: ViewTable, key: Key) -> KeyAnswer:
        """The row of one whole key."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[KeyAnswer] = loop.create_future()
        if table not in self._waiting:
            self._waiting[table] = []
            loop.call_soon(self._look, table)
        self._waiting[table].append((key, answer))
        return await answer

    def _look(self, table: ViewTable) -> None:
        # The client of a request that was cancelled is gone.
        waiting = [(key, answer) for key, answer in self._waiting.pop(table) if not answer.done()]
        if waiting:
            self._answer(table, waiting)

    def _answer(self, table: ViewTable, waiting: _Waiting) -> None:
        try:
            epoch, rows, places = table.find(key_frame([key for key, _ in waiting], table.view))
        except Exception as error:  # noqa: BLE001 - the request answers with it
            if len(waiting) == 1:
                waiting[0][1].set_exception(error)
                return
            # One of the keys may be none that a column can have.
            for one in waiting:
                self._answer(table, [one])
            return
        look = _Look(rows)
        found = {place: number for number, place in enumerate(places.tolist())}
        for number, (_, answer) in enumerate(waiting):
            answer.set_result(KeyAnswer(epoch, look, found[number]) if number in found else KeyAnswer(epoch))
