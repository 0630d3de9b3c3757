"""Tables as files as a user declares them; nothing is opened here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.connectors.targets import FactsOnly, need_client
from headrace.core.durations import Duration, duration
from headrace.core.errors import SettingsError
from headrace.core.secret import Secret

if TYPE_CHECKING:
    from headrace.connectors.lake.delta import DeltaOutput
    from headrace.connectors.lake.files import ParquetOutput
    from headrace.connectors.lake.iceberg import IcebergOutput


@dataclass(frozen=True)
class ParquetFiles(FactsOnly):
    """A directory of Parquet files; see `parquet`."""

    directory: Path
    roll: timedelta | None = None

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Parquet has every type of a stream."""

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> ParquetOutput:
        """The directory as a job writes it."""
        from headrace.connectors.lake.files import ParquetOutput

        return ParquetOutput(self.directory, columns, roll=self.roll)

    def __str__(self) -> str:
        return f"Parquet files in {self.directory}"


@dataclass(frozen=True)
class DeltaTarget:
    """A Delta table; see `delta`."""

    directory: Path
    key: tuple[str, ...] = ()
    append_only: bool = False
    compact_every: int = 100

    @property
    def replaces(self) -> bool:
        return True

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if the client is missing: before anything runs."""
        need_client("deltalake", "the client for Delta tables", "delta")

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> DeltaOutput:
        """The table as a job writes it."""
        from headrace.connectors.lake.delta import DeltaOutput

        return DeltaOutput(self.directory, columns, key, self.compact_every)

    def __str__(self) -> str:
        return f"Delta table {self.directory}"


@dataclass(frozen=True)
class IcebergTarget:
    """A table of an Iceberg catalog; see `iceberg`."""

    table: str
    warehouse: Path
    catalog: Secret
    key: tuple[str, ...] = ()
    append_only: bool = False
    compact_every: int = 100

    def __post_init__(self) -> None:
        if len(self.table.split(".")) < 2 or not all(self.table.split(".")):
            raise SettingsError(f"{self.table!r} is no name of an Iceberg table", hint='"namespace.table"')

    @property
    def replaces(self) -> bool:
        return True

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if the client is missing: before anything runs."""
        need_client("pyiceberg.catalog.sql", "the client for Iceberg tables", "iceberg")

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> IcebergOutput:
        """The table as a job writes it."""
        from headrace.connectors.lake.iceberg import IcebergOutput

        return IcebergOutput(self, columns, key)

    def __str__(self) -> str:
        return f"Iceberg table {self.table}"


def parquet(directory: str | Path, *, roll: Duration | None = None) -> ParquetFiles:
    """A directory as the target of a sink of facts, exactly once: one Parquet file for each epoch that has any.

    With `roll` there are fewer and larger files: epochs wait up to so long, or until they make 64 MiB, and come as one file; when a run
    ends, all of them come. A file is there whole or not at all, and stays as it is. Readers take `*.parquet`.

    >>> str(parquet("exports/views", roll="10 minutes"))
    'Parquet files in exports/views'
    """
    return ParquetFiles(Path(directory), None if roll is None else duration(roll))


def delta(directory: str | Path, *, key: str | Sequence[str] = (), append_only: bool = False, compact_every: int = 100) -> DeltaTarget:
    """A Delta table as the target of a sink, exactly once: one commit for each epoch, which holds its number.

    Facts are added or, with `key`, replace earlier ones; results that change replace and remove rows by their key. The table is made if
    it is not there; columns that results have since then are added to it. After every `compact_every` commits small files are united,
    and those that are not part of the table for a week are removed; 0 leaves them.

    >>> str(delta("lake/views_per_url"))
    'Delta table lake/views_per_url'
    """
    return DeltaTarget(Path(directory), (key,) if isinstance(key, str) else tuple(key), append_only, compact_every)


def iceberg(
    table: str,
    *,
    warehouse: str | Path,
    catalog: str | Secret | None = None,
    key: str | Sequence[str] = (),
    **options: Any,
) -> IcebergTarget:
    """A table of an Iceberg catalog as the target of a sink, exactly once: one transaction for each epoch, with its number in a property.

    `table` is `namespace.table`; its files are under `warehouse`, a directory. `catalog` is the address of the database that holds the
    catalog, whose name is `headrace`; by default SQLite in the warehouse. Facts are added or, with `key`, replace earlier ones; results
    that change replace and remove rows by their key. The table is made if it is not there; columns that results have since then are
    added to it. Options are `append_only`, and `compact_every`: a table of so many files, 100, and not more than 256 MiB is written anew
    as one; 0 leaves it.

    >>> str(iceberg("shop.views_per_url", warehouse="lake"))
    'Iceberg table shop.views_per_url'
    """
    place = Path(warehouse)
    address = catalog if catalog is not None else f"sqlite:///{place.absolute()}/catalog.db"
    hidden = address if isinstance(address, Secret) else Secret(address)
    return IcebergTarget(table, place, hidden, (key,) if isinstance(key, str) else tuple(key), **options)
