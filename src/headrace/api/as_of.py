"""Tables as of a time, as the user gives them to `join`."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.api.arguments import Namer
from headrace.plan.building.as_of_joins import VersionedTable


@dataclass(frozen=True)
class AsOf:
    """A table as of a time, in `stream.join(table.as_of(...), on=...)`."""

    namer: Namer
    versions: VersionedTable
