"""A directory of Parquet files as a user declares it; nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.connectors.targets import FactsOnly
from headrace.core.durations import Duration, duration

if TYPE_CHECKING:
    from headrace.connectors.parquet.output import ParquetOutput


@dataclass(frozen=True)
class ParquetFiles(FactsOnly):
    """A directory of Parquet files; see `parquet`."""

    directory: Path
    roll: timedelta | None = None

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Parquet has every type of a stream."""

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> ParquetOutput:
        """The directory as a job writes it."""
        from headrace.connectors.parquet.output import ParquetOutput

        return ParquetOutput(self.directory, columns, roll=self.roll)

    def __str__(self) -> str:
        return f"Parquet files in {self.directory}"


def parquet(directory: str | Path, *, roll: Duration | None = None) -> ParquetFiles:
    """A directory as the target of a sink of facts, exactly once: one Parquet file for each epoch that has any.

    With `roll` there are fewer and larger files: epochs wait up to so long, or until they make 64 MiB, and come as one file; when a run
    ends, all of them come. A file is there whole or not at all, and stays as it is. Readers take `*.parquet`.

    >>> str(parquet("exports/views", roll="10 minutes"))
    'Parquet files in exports/views'
    """
    return ParquetFiles(Path(directory), None if roll is None else duration(roll))
