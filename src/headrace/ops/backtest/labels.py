"""Labels: what an app should have found, from a file or a topic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa

from headrace.core.clock import to_datetime
from headrace.core.columns.schema import quoted, type_name
from headrace.core.errors import HeadraceError, PlanError
from headrace.log import Log
from headrace.operators.expressions import evaluate
from headrace.operators.expressions.dtypes import dtype
from headrace.plan.expressions import check, parse


def _texts(file: Path) -> pl.DataFrame:
    """A .csv file as texts: whether 007 is a number is told by the output."""
    return pl.read_csv(file, infer_schema=False)


_READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".parquet": pl.read_parquet,
    ".csv": _texts,
    ".ndjson": pl.read_ndjson,
    ".jsonl": pl.read_ndjson,
}


def labels_of(text: str, log: Log, since: int | None) -> pl.DataFrame:
    """The labels of a file (.csv, .ndjson, .jsonl or .parquet), or of a topic; of a topic with event time those from `since` on."""
    file = Path(text)
    if file.suffix in _READERS and file.is_file():
        try:
            return _READERS[file.suffix](file)
        except (pl.exceptions.PolarsError, OSError) as error:
            said = (str(error).splitlines() or [""])[0]
            raise PlanError(f"the labels in {text!r} cannot be read: {said}", hint="see whether the file is complete") from error
    try:
        topic = log.topic(text)
    except HeadraceError:
        said = "is a file, but not of labels" if file.is_file() else "is neither a file nor a topic of the log"
        raise PlanError(
            f"--labels {text!r} {said}", hint="name a file that ends in .csv, .ndjson, .jsonl or .parquet, or a topic"
        ) from None
    rows = pl.DataFrame(log.read(text, columns=topic.columns.names))
    return rows if since is None or topic.time is None else rows.filter(pl.col(topic.time) >= to_datetime(since))


def fitted(labels: pl.DataFrame, columns: pa.Schema) -> pl.DataFrame:
    """Labels in which the columns of an output have its types, as far as all their values can be read so."""
    for column in columns:
        if column.name in labels.columns and labels.schema[column.name] != dtype(column.type):
            labels = _read_as(labels, column)
    return labels


def _read_as(labels: pl.DataFrame, column: pa.Field) -> pl.DataFrame:
    given = labels[[column.name]].to_arrow(compat_level=pl.CompatLevel.oldest()).schema.field(0)
    kind = pa.string() if pa.types.is_large_string(given.type) else given.type
    try:
        cast = check(parse(f"cast({quoted(column.name)} as {type_name(column.type)})"), pa.schema([given.with_type(kind)]))
    except HeadraceError:
        return labels
    if not cast.fused:
        return labels
    read, unread = evaluate(labels, {column.name: cast})
    return labels if unread.height else labels.with_columns(read.get_column(column.name))
