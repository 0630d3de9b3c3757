"""The support bundle of a job: what another person needs to understand it, in one zip, without secrets and without records."""

from __future__ import annotations

import json
import os
import platform
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from headrace.checkpoint.journal import COMMITS, OFFSETS
from headrace.core.redaction import Redaction
from headrace.core.secret import Secret
from headrace.core.settings import Settings
from headrace.engine.accounting import REASONS
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.facts.description import FILE as DESCRIPTION
from headrace.log import Log

_PACKAGES = (
    "headrace", "pyspark", "polars", "pyarrow", "numpy", "pandas", "duckdb", "starlette", "uvicorn", "confluent-kafka", "deltalake",
    "pyiceberg", "psycopg", "redis",
)  # fmt: skip
# The number of last epochs.
_EPOCHS = 5
# Their values come from records.
_OF_RECORDS = (*REASONS, "hot_keys")


def write_bundle(target: Path, place: JobDirectory, settings: Settings, log: Log | None) -> list[str]:
    """Write the bundle of a job, and return the names of the files in it."""
    hide = Redaction(os.environ, _tokens(settings.home))
    content = {name: hide(text) for name, text in _content(place, settings, log)}
    # Only its owner may read it.
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(descriptor, 0o600)  # an older one may be open to others
    with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, text in content.items():
            bundle.writestr(name, text)
    return list(content)


def _content(place: JobDirectory, settings: Settings, log: Log | None) -> Iterator[tuple[str, str]]:
    yield "versions.json", _json(_versions())
    yield (
        "settings.json",
        _json({name: str(value) if isinstance(value, Path | Secret) else value for name, value in asdict(settings).items()}),
    )
    for name in (DESCRIPTION, "job.json"):
        if (place.path / name).is_file():
            yield name, (place.path / name).read_text(encoding="utf-8")
    if (place.path / "run.json").is_file():
        yield "run.json", _json(_without_records(json.loads((place.path / "run.json").read_text(encoding="utf-8"))))
    for kind in (OFFSETS, COMMITS):
        entries = [file for file in (place.checkpoint / kind).glob("[0-9]*") if file.name.isdecimal()]
        for file in sorted(entries, key=lambda file: int(file.name))[-_EPOCHS:]:
            yield f"{kind}/{file.name}", file.read_text(encoding="utf-8")
    record = place.record()
    if log is not None and record is not None:
        yield "accounting.json", _json([_without_records(row) for row in JobAccounting(log, place.name, record, place.accounting).totals()])


def _versions() -> dict[str, str | None]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": str(os.cpu_count()),
        **{name: _version(name) for name in _PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _without_records(content: Mapping[str, Any]) -> dict[str, Any]:
    """Values without those that come from records, in the parts, too."""
    kept = {name: value for name, value in content.items() if name not in _OF_RECORDS}
    return {name: _without_records(value) if isinstance(value, Mapping) else value for name, value in kept.items()}


def _tokens(home: Path) -> tuple[str, ...]:
    """The tokens of the server of a home."""
    file = home / "serve" / "tokens.json"
    return tuple(json.loads(file.read_text(encoding="utf-8")).values()) if file.is_file() else ()


def _json(content: object) -> str:
    return json.dumps(content, indent=1)
