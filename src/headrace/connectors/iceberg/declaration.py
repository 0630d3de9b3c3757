"""A table of an Iceberg catalog as a user declares it; nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.connectors.lake import LakeTable
from headrace.core.errors import SettingsError
from headrace.core.names import Names, listed
from headrace.core.secret import Secret

if TYPE_CHECKING:
    from headrace.connectors.iceberg.output import IcebergOutput


@dataclass(frozen=True)
class IcebergTarget(LakeTable):
    """A table of an Iceberg catalog; see `iceberg`."""

    table: str
    warehouse: Path
    catalog: Secret
    client = ("pyiceberg.catalog.sql", "the client for Iceberg tables", "iceberg")

    def __post_init__(self) -> None:
        if len(self.table.split(".")) < 2 or not all(self.table.split(".")):
            raise SettingsError(f"{self.table!r} is no name of an Iceberg table", hint='"namespace.table"')

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> IcebergOutput:
        """The table as a job writes it."""
        from headrace.connectors.iceberg.output import IcebergOutput

        return IcebergOutput(self, columns, key)

    def __str__(self) -> str:
        return f"Iceberg table {self.table}"


def iceberg(
    table: str,
    *,
    warehouse: str | Path,
    catalog: str | Secret | None = None,
    key: Names = (),
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
    return IcebergTarget(table, place, hidden, key=listed(key), **options)
