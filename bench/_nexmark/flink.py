"""Flink's side of Nexmark: Flink SQL by PyFlink, installed into an environment of its own, over Parquet files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import polars as pl
import pyspark
from _processes import cpu_seconds

from headrace.core.files.jars import cache_directory, fetch_jars, read_lock

from . import files
from .answers import Answers
from .peer_sql import FLINK
from .sides import Inputs, Refused, Spent
from .site import COLUMNS

VERSION = "2.3.0"
_HERE = Path(__file__).parent
_TYPES = {"bigint": "BIGINT", "string": "STRING", "timestamp": "TIMESTAMP(3)"}
_MARK = "answer: "
_REFUSED = {
    "q6": "it has no average over rows of a result that changes",
    "q12": "a window of the wall clock that is open when the files end gives nothing",
}


def python_with_flink() -> Path | Refused:
    """The Python that has PyFlink; it is installed from PyPI the first time."""
    place = cache_directory() / f"pyflink-{VERSION}"
    python = place / "bin" / "python"
    if (place / "installed").exists():
        return python
    venv.create(place, with_pip=True, clear=True)
    command = [str(python), "-m", "pip", "install", "--quiet", f"apache-flink=={VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return Refused(f"PyFlink {VERSION} cannot be installed for Python {sys.version.split()[0]}: {done.stderr.strip()[-300:]}")
    (place / "installed").touch()
    return python


class Flink:
    """Runs the queries in one JVM, all cores at work."""

    name = "flink"

    def __init__(self, python: Path, inputs: Inputs, cores: int, answers: Answers) -> None:
        self._answers = answers
        self._scratch = tempfile.TemporaryDirectory(prefix="headrace-flink-")
        options = {
            "cores": cores,
            "jars": [str(jar) for jar in _jars()],
            "checkpoints": f"{self._scratch.name}/checkpoints",
            "directories": {f"_{amount}": str(files.whole(place)) for amount, place in inputs.all.items()},
            "columns": {name: _columns(listed) for name, listed in COLUMNS.items()},
        }
        command = [str(python), str(_HERE / "flink_process.py"), json.dumps(options)]
        self._log = (Path(self._scratch.name) / "log").open("w")
        # What our Python finds in its path is not for Flink's.
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log, env=clean, text=True)
        self._answer()

    def answer(self, query: str) -> pl.DataFrame | Refused:
        if query not in FLINK:
            return Refused(_REFUSED[query])
        place = Path(self._scratch.name) / "rows.json"
        said = self._ask(self._sql(query, "few"), str(place))
        if "refused" in said:
            return Refused(_fact(said["refused"]))
        expected = self._answers.of(query)
        return _typed(json.loads(place.read_text()), expected)

    def spend(self, query: str, amount: str) -> Spent:
        before, began = cpu_seconds(self._process.pid), time.perf_counter()
        said = self._ask(self._sql(query, amount), "")
        if "refused" in said:
            raise RuntimeError(f"{query}: {said['refused']}")
        return Spent(cpu_seconds(self._process.pid) - before, time.perf_counter() - began)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._log.close()
        self._scratch.cleanup()

    def _sql(self, query: str, amount: str) -> str:
        return FLINK[query].format(**{name: f"{name}_{amount}" for name in COLUMNS})

    def _ask(self, query: str, collect: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"query": query, "collect": collect}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_MARK):
                found: dict[str, Any] = json.loads(line.removeprefix(_MARK))
                return found
        self._log.flush()
        raise RuntimeError(f"Flink ended: {Path(self._log.name).read_text()[-2_000:]}")


def _jars() -> list[Path]:
    """The format of the files, and Hadoop's classes that it needs, which Spark brings."""
    lock = (_HERE.parent / "flink-jars.lock").read_text()
    return [*fetch_jars(read_lock(lock)), *sorted((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"))]


def _columns(listed: str) -> str:
    named = (part.split() for part in listed.split(", "))
    return ", ".join(f"`{name}` {_TYPES[kind]}" for name, kind in named)


def _fact(error: str) -> str:
    """The innermost cause that a long trace names."""
    causes = [line for line in error.splitlines() if "Exception: " in line or "Caused by" in line]
    return (causes[-1] if causes else error).partition("Exception: ")[2][:200] or error[:200]


def _typed(rows: list[list[Any]], like: pl.DataFrame) -> pl.DataFrame:
    """Rows as they came through JSON, in the types of an answer."""
    columns: dict[str, pl.Series] = {}
    for place, (name, kind) in enumerate(like.schema.items()):
        values = [row[place] for row in rows]
        if kind.is_temporal():
            columns[name] = pl.Series(values, dtype=pl.String).str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", time_zone="UTC")
        elif kind.is_decimal():
            columns[name] = pl.Series([str(value) for value in values], dtype=pl.String).cast(kind)
        else:
            columns[name] = pl.Series(values, dtype=kind)
    return pl.DataFrame(columns)
