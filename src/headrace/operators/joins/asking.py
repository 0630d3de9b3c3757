"""Calls of a user's function that asks another system: in batches, side by side, bounded in time and repeated.

What it returns is checked key by key: nothing that was not asked for, or is not of the declared types, becomes part of a result.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.core.durations import spelled
from headrace.operators.expressions import REASON
from headrace.operators.key_join import key_join
from headrace.operators.process.conforming import DeclaredColumn, columns_of
from headrace.operators.user_errors import raised
from headrace.plan.joins.remote_lookup import RemoteFunction, Unreadable

FOUND = "_found"
_PLACE = "_place"
# The number of calls past their time-out that may still run, for each one that may run at a time: threads cannot be stopped.
_ABANDONED = 4
# No answer has more rows than this for each key, and some more: a generator need not end.
_MOST, _MORE = 10, 100


class Unanswered(Exception):
    """Why a batch of keys has no answer."""


class _Call:
    """One call of the function in a thread of its own, which is abandoned if it takes too long."""

    def __init__(self, remote: RemoteFunction, keys: pa.Table) -> None:
        self._remote, self._keys = remote, keys
        self._rows: list[Any] | None = None
        self._error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=f"lookup {remote}", daemon=True)

    def rows(self) -> list[Any]:
        """The rows that it returns; raises what it raises, or that it takes too long."""
        self.thread.start()
        self.thread.join(self._remote.timeout.total_seconds())
        if self.thread.is_alive():
            raise TimeoutError(f"no answer within {spelled(self._remote.timeout)}")
        if self._rows is None:
            raise self._error if isinstance(self._error, Exception) else RuntimeError(f"it ended with {self._error!r}")
        return self._rows

    def _run(self) -> None:
        try:
            answer = self._remote.function(self._keys)
            self._rows = list(islice(_rows(answer), _MOST * self._keys.num_rows + _MORE + 1))
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is waited for
            self._error = error


class Asker:
    """Asks for keys, whose columns are `on`, and returns a row for each, with whether there is one, or the reason why that is not known."""

    def __init__(self, remote: RemoteFunction, on: Sequence[str], keys: pa.Schema, returns: pa.Schema) -> None:
        self._remote, self._on, self._keys = remote, list(on), keys
        self._key_columns = columns_of(pa.schema([one.with_nullable(False) for one in keys]), "key")
        self._returns = columns_of(returns, "column")
        self._names = {*keys.names, *returns.names}
        self._abandoned: list[threading.Thread] = []
        self._lock = threading.Lock()

    def ask(self, keys: pl.DataFrame) -> pl.DataFrame:
        """The keys in their order, with the columns of their rows, `_found` and `_reason`."""
        size = self._remote.batch
        parts = [keys[first : first + size] for first in range(0, keys.height, size)]
        if len(parts) < 2:
            return self._answered(keys) if parts else self._rows(keys, {}, {})
        with ThreadPoolExecutor(min(self._remote.parallel, len(parts))) as pool:
            return pl.concat(pool.map(self._answered, parts))

    def _answered(self, keys: pl.DataFrame) -> pl.DataFrame:
        table = keys.rename(dict(zip(self._on, self._keys.names, strict=True))).to_arrow(compat_level=pl.CompatLevel.oldest())
        try:
            rows = self._tried(table.cast(self._keys))
            values, reasons = self._read(keys, rows)
        except Unanswered as why:
            values, reasons = {}, dict.fromkeys(range(keys.height), str(why))
        return self._rows(keys, values, reasons)

    def _rows(self, keys: pl.DataFrame, values: Mapping[int, list[Any]], reasons: Mapping[int, str]) -> pl.DataFrame:
        """The keys with the values for each place, or nothing, or the reason."""
        empty = [None] * len(self._returns)
        listed = [values.get(place, empty) for place in range(keys.height)]
        columns = [column.series([row[number] for row in listed]) for number, column in enumerate(self._returns)]
        found = pl.Series(FOUND, [place in values for place in range(keys.height)], pl.Boolean)
        reason = pl.Series(REASON, [reasons.get(place) for place in range(keys.height)], pl.String)
        return keys.with_columns_seq(*columns, found, reason)

    def _tried(self, keys: pa.Table) -> list[Any]:
        """The rows of a call that returned; it is repeated while it does not."""
        remote, why = self._remote, ""
        for attempt in range(remote.retries + 1):
            if attempt:
                time.sleep(remote.backoff.total_seconds() * 2 ** (attempt - 1))
            self._refuse_more_threads()
            call = _Call(remote, keys)
            try:
                rows = call.rows()
            except Exception as error:  # noqa: BLE001 - whatever a function raises is about these keys
                why = raised(error, remote.function)
                if call.thread.is_alive():
                    with self._lock:
                        self._abandoned.append(call.thread)
                continue
            if len(rows) > _MOST * keys.num_rows + _MORE:
                raise Unanswered(f"{remote} returned more than {len(rows) - 1:,} rows for {keys.num_rows:,} keys")
            return rows
        raise Unanswered(f"{remote}: {why}" if not remote.retries else f"{remote} failed {remote.retries + 1} times: {why}")

    def _refuse_more_threads(self) -> None:
        with self._lock:
            self._abandoned = [thread for thread in self._abandoned if thread.is_alive()]
            running = len(self._abandoned)
        if running >= _ABANDONED * self._remote.parallel:
            raise Unanswered(f"{self._remote} is not called: {running} earlier calls have not returned")

    def _read(self, keys: pl.DataFrame, rows: list[Any]) -> tuple[dict[int, list[Any]], dict[int, str]]:
        """The values that were returned for keys, by the place of each, and what is wrong with those of others."""
        values, reasons = dict[int, list[Any]](), dict[int, str]()
        for place, row in zip(self._places(keys, rows), rows, strict=True):
            if place in values or place in reasons:
                values.pop(place, None)
                reasons[place] = f"{self._remote} returned several rows for the key"
                continue
            if isinstance(row, Unreadable):
                reasons[place] = f"{self._remote}: {row.reason}"
                continue
            try:
                values[place] = [_conforming(column, row) for column in self._returns]
            except (TypeError, ValueError) as error:
                reasons[place] = f"{self._remote}: {error}"
        return values, reasons

    def _places(self, keys: pl.DataFrame, rows: list[Any]) -> list[int]:
        """The place of each row's key among those that were asked for."""
        try:
            found = [[_conforming(column, self._known(row)) for column in self._key_columns] for row in rows]
        except (TypeError, ValueError) as error:
            raise Unanswered(f"{self._remote}: {error}") from error
        columns = [column.series([key[number] for key in found]) for number, column in enumerate(self._key_columns)]
        answered = pl.DataFrame(columns).rename(dict(zip(self._keys.names, self._on, strict=True)))
        asked = keys.with_row_index(_PLACE)
        places = key_join(answered, asked, self._on, "left").get_column(_PLACE).to_list()
        if None in places:
            raise Unanswered(f"{self._remote} returned a row for {found[places.index(None)]}, which it was not asked for")
        return places

    def _known(self, row: Any) -> Mapping[str, Any]:
        """A row with no other columns than the declared ones, or the key of one that cannot be read."""
        if isinstance(row, Unreadable):
            return row.key
        if not isinstance(row, Mapping):
            raise TypeError(f"a row is a dictionary, not {str(row)[:100]!r}")
        unknown = sorted(str(name) for name in row if name not in self._names)
        if unknown:
            raise ValueError(f"returns= has no column {unknown[0]!r}")
        return row


def _conforming(column: DeclaredColumn, row: Mapping[str, Any]) -> Any:
    if column.name not in row:
        raise ValueError(f"a row has no column {column.name!r}")
    return column.conforming(row[column.name])


def _rows(answer: Any) -> Iterator[Any]:
    """What a function returned, row by row."""
    if isinstance(answer, pl.DataFrame):
        return answer.iter_rows(named=True)
    if isinstance(answer, pa.Table | pa.RecordBatch):
        return iter(answer.to_pylist())
    if answer is None or isinstance(answer, Mapping | str | bytes):
        raise TypeError(f"it returned {type(answer).__name__}, not rows: a list of dictionaries, or an Arrow table")
    return iter(answer)
