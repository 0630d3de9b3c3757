"""Questions for whole keys, answered together: all that wait share one look at the table.

A look takes about as long for fifty keys as for one. Under load questions wait for the look before theirs, not for each other. While the
table moves to its next epoch, they wait without holding up the server's other work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from headrace.operators.expressions.dtypes import dtype
from headrace.serve.views.catalog import ServedView
from headrace.serve.views.formats import JSON, ResponseFormat
from headrace.serve.views.row_texts import RowTexts
from headrace.serve.views.table import ViewTable

# Seconds until the next look at a table that is moving to its next epoch.
_PAUSE = 0.001

Key = tuple[Any, ...]
"""The values of a view's key columns."""


class _Look:
    """The rows that one look found."""

    def __init__(self, rows: pl.DataFrame, texts: RowTexts) -> None:
        self.rows, self._texts = rows, texts

    @cached_property
    def objects(self) -> list[str]:
        return self._texts.of(self.rows)


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
        if waiting and not self._answer(table, waiting):
            self._waiting[table] = waiting
            asyncio.get_running_loop().call_later(_PAUSE, self._look, table)

    def _answer(self, table: ViewTable, waiting: _Waiting, *, wait: bool = False) -> bool:
        """Answer all these questions; False if the table is moving to its next epoch."""
        try:
            found = table.find(key_frame([key for key, _ in waiting], table.view), wait=wait)
        except Exception as error:  # noqa: BLE001 - the request answers with it
            if len(waiting) == 1:
                waiting[0][1].set_exception(error)
                return True
            # One of the keys may be none that a column can have.
            for one in waiting:
                self._answer(table, [one], wait=True)
            return True
        if found is None:
            return False
        epoch, rows, places = found
        look = _Look(rows, table.texts)
        numbers = {place: number for number, place in enumerate(places.tolist())}
        for number, (_, answer) in enumerate(waiting):
            answer.set_result(KeyAnswer(epoch, look, numbers[number]) if number in numbers else KeyAnswer(epoch))
        return True
