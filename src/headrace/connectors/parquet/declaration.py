"""A directory of Parquet files as a user declares it; nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.connectors.targets import AT_ONCE, STAGED, path_of
from headrace.core.durations import Duration, duration
from headrace.core.promise import Promise, Takes
from headrace.core.where import says_where

if TYPE_CHECKING:
    from headrace.connectors.parquet.output import ParquetOutput


@dataclass(frozen=True)
class ParquetFiles:
    """A directory of Parquet files; see `parquet`."""

    directory: Path
    roll: timedelta | None = None

    @property
    def key(self) -> tuple[str, ...]:
        return ()

    @property
    def promise(self) -> Promise:
        mechanism = f"{STAGED} renames one file into place, with `roll=` one file for several epochs"
        return Promise(Takes.FACTS, "exactly once", mechanism, AT_ONCE)

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Parquet has every type of a stream."""

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> ParquetOutput:
        """The directory as a job writes it."""
        from headrace.connectors.parquet.output import ParquetOutput

        return ParquetOutput(self.directory, columns, roll=self.roll)

    def __str__(self) -> str:
        return f"Parquet files in {self.directory}"


@says_where
def parquet(directory: str | Path, *, roll: Duration | None = None) -> ParquetFiles:
    """A directory as the target of a sink of facts, exactly once: one Parquet file for each epoch that has any.

    With `roll` there are fewer and larger files: epochs wait up to that long, or until they make 64 MiB, and become one file; when a run
    ends, all waiting epochs are written. A file appears as a whole or not at all, and never changes. Readers read `*.parquet`.

    >>> str(parquet("exports/views", roll="10 minutes"))
    'Parquet files in exports/views'
    """
    return ParquetFiles(path_of(directory), None if roll is None else duration(roll))
