"""Questions for whole keys, answered together: all that wait share one look at the table.

A look takes about as long for fifty keys as for one. Under load questions wait for the look before theirs, not for each other.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from headrace.schema.legible import as_json
from headrace.serve.views.formats import JSON, ResponseFormat
from headrace.serve.views.table import ViewTable


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


_Waiting = list[tuple[pl.DataFrame, asyncio.Future[KeyAnswer]]]


class KeyReads:
    """The questions that wait, by table."""

    def __init__(self) -> None:
        self._waiting: dict[ViewTable, _Waiting] = {}

    async def find(self, table: ViewTable, key: pl.DataFrame) -> KeyAnswer:
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
        if not waiting:
            return
        try:
            epoch, rows, places = table.find(pl.concat([key for key, _ in waiting]))
        except Exception as error:  # noqa: BLE001 - each request answers with it
            for _, answer in waiting:
                answer.set_exception(error)
            return
        look = _Look(rows)
        found = {place: number for number, place in enumerate(places.tolist())}
        for number, (_, answer) in enumerate(waiting):
            answer.set_result(KeyAnswer(epoch, look, found[number]) if number in found else KeyAnswer(epoch))
