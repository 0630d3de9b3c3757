"""Labels: what an app should have found, from a file or a topic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from headrace.core.clock import to_datetime
from headrace.core.errors import PlanError
from headrace.log import Log
from headrace.log.errors import UnknownTopic

_READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".parquet": pl.read_parquet,
    ".csv": pl.read_csv,
    ".ndjson": pl.read_ndjson,
    ".jsonl": pl.read_ndjson,
}


def labels_of(text: str, log: Log, since: int | None) -> pl.DataFrame:
    """The labels of a file (.csv, .ndjson, .jsonl or .parquet), or of a topic; of a topic with event time those from `since` on."""
    file = Path(text)
    if file.suffix in _READERS and file.is_file():
        return _READERS[file.suffix](file)
    try:
        topic = log.topic(text)
    except UnknownTopic:
        raise PlanError(
            f"labels {text!r} are neither a file nor a topic of the log",
            hint="name a file that ends in .csv, .ndjson, .jsonl or .parquet, or a topic",
        ) from None
    rows = pl.DataFrame(log.read(text, columns=topic.columns.names))
    return rows if since is None or topic.time is None else rows.filter(pl.col(topic.time) >= to_datetime(since))
