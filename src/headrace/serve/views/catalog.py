"""The jobs of a home and their views, as the last run of each job described them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from headrace.core.columns.schema import schema
from headrace.core.errors import JobError
from headrace.jobs.facts.description import JobDescription, read_description

_log = logging.getLogger("headrace.serve")


@dataclass(frozen=True)
class ServedView:
    """A view that a server keeps: the job that writes it, its topic, its columns and its key."""

    app: str
    name: str
    topic: str
    columns: pa.Schema
    key: tuple[str, ...]


@dataclass(frozen=True)
class Catalog:
    """The jobs under one home."""

    home: Path

    def jobs(self) -> Iterator[JobDescription]:
        """Every job that has run, by name."""
        folder = self.home / "jobs"
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            try:
                found = read_description(path)
            except JobError as error:
                # Other jobs are served.
                _say_once(str(error))
                continue
            if found is not None:
                yield found

    def views(self) -> Iterator[ServedView]:
        """Every view of every job."""
        for job in self.jobs():
            for view in job.views:
                yield ServedView(job.app, view.name, view.topic, schema(view.columns), view.key)


@lru_cache(maxsize=100)
def _say_once(text: str) -> None:
    """Jobs are looked for every second."""
    _log.warning("%s", text)
