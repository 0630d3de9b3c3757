"""The events as Parquet files: for Spark one of every kind an epoch, for Flink all of a kind in one, the same rows in the same order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.core.columns.schema import TIMESTAMP

from .events import Events
from .site import side_rows

_WHOLE, _PARTS = "whole", "parts"
_SOME_TIME = 1_700_000_000


def write(events: Events, size: int, directory: Path) -> None:
    """Write all events, `size` of them in each part, and after them one of each kind that lets every window of Spark's close."""
    writers: dict[str, pq.ParquetWriter] = {}
    for number, batch in enumerate(events.batches(size)):
        for name, table in batch.items():
            _part(directory, name, number, table)
            if name not in writers:
                (directory / _WHOLE).mkdir(exist_ok=True)
                writers[name] = pq.ParquetWriter(directory / _WHOLE / f"{name}.parquet", table.schema)
            writers[name].write_table(table)
    for writer in writers.values():
        writer.close()
    pq.write_table(side_rows(), directory / _WHOLE / "side.parquet")
    for name, table in _sentinels(events, next(events.batches(size))).items():
        _part(directory, name, 10_000, table)


def whole(directory: Path) -> Path:
    """Where a file of each kind has everything."""
    return directory / _WHOLE


def parts(directory: Path, name: str) -> Path:
    """Where the events of a kind are in parts."""
    return directory / _PARTS / name


def _part(directory: Path, name: str, number: int, table: pa.Table) -> None:
    place = parts(directory, name)
    place.mkdir(parents=True, exist_ok=True)
    file = place / f"{number:05}.parquet"
    pq.write_table(table, file)
    # Spark takes the oldest file first.
    os.utime(file, (_SOME_TIME + number,) * 2)


def _sentinels(events: Events, like: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """One event of each kind, an hour behind all others, whose numbers are all below zero."""
    last = events.begin + timedelta(seconds=events.count / events.rate, hours=1)
    found = {}
    for name, table in like.items():
        values = {field.name: last if field.type == TIMESTAMP else -1 if pa.types.is_integer(field.type) else "-" for field in table.schema}
        found[name] = pa.Table.from_pylist([values], schema=table.schema)
    return found
