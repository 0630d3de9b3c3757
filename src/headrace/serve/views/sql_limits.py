"""The limits of a query, known to the server and to the process that answers: it imports nothing else of the server."""

from __future__ import annotations

from dataclasses import dataclass

# Seconds that a query which can be interrupted gets to end after its time.
GRACE = 1.0
# A message passes at most this many files.
FILES_AT_ONCE = 200
TOO_LONG = "the query took longer than {:g} seconds"


@dataclass(frozen=True)
class SqlLimits:
    """The limits of one query."""

    seconds: float = 10.0
    rows: int = 100_000
    memory: str = "1GB"
    process: int = 2 * 1024**3
    """Bytes that the process may take for all: DuckDB does not count the texts and lists that its functions make."""
    answer: int = 256 * 1024 * 1024
    """Bytes of the rows."""
    threads: int = 2
